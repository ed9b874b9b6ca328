/** Random instructions of rules: most of them as the product writes them, some that the kernel refuses. For tests. */
import { type Expression, FIB_FLAG } from "../../../src/linux/nftables/expression.ts";
import {
  loadAddress,
  loadPort,
  matchFamily,
  matchInterface,
  matchInterfacePrefix,
  matchPorts,
  matchPrefix,
  matchProtocol,
} from "../../../src/linux/nftables/match.ts";
import type { NftElement } from "../../../src/linux/nftables/set.ts";
import { hostNumber, portValue } from "../../../src/linux/nftables/value.ts";
import type { Verdict } from "../../../src/linux/nftables/verdict.ts";
import { prefix } from "../../../test/support/ip.ts";
import type { Random } from "../../schedule/random.ts";

export interface Names {
  readonly chains: readonly string[];
  readonly sets: readonly string[];
}

export function randomVerdict(random: Random, names: Names): Verdict {
  const kind = random.pick(["accept", "drop", "continue", "return", "jump", "jump", "jump", "goto"] as const);
  return kind === "jump" || kind === "goto" ? { kind, chain: random.pick(names.chains) } : { kind };
}

export function randomExpressions(random: Random, names: Names): Expression[] {
  if (random.chance(0.25)) return [{ kind: "verdict", verdict: { kind: "jump", chain: random.pick(names.chains) } }];
  const parts = Array.from({ length: random.below(4) }, () => random.pick(PARTS)(random, names)).flat();
  return random.chance(0.6) ? [...parts, { kind: "verdict", verdict: randomVerdict(random, names) }] : parts;
}

type Part = (random: Random, names: Names) => Expression[];

const register = (random: Random) => random.pick([0, 0, 0, 1, 2, 4, 5, 12, 15]);

const PARTS: readonly Part[] = [
  (random) => matchFamily(random.pick([4, 6])),
  (random) => matchProtocol(random.pick([6, 17])),
  (random) => [...matchProtocol(6), ...matchPorts("destination", random.pick([80, 90]), 90)],
  (random) => matchPrefix(random.pick(["source", "destination"]), prefix(random.pick(["10.0.0.0/24", "10.0.0.0/9"]))),
  (random) => matchPrefix("source", prefix(random.pick(["fd00::/64", "fd00::/77"]))),
  (random) => matchInterface(random.pick(["iifname", "oifname"]), random.pick(["equal", "different"]), "eth0"),
  () => matchInterfacePrefix("iifname", "cali"),
  (random) => [{ kind: "counter", packets: random.below(9), bytes: random.below(900) }],
  () => [{ kind: "counter" }],
  (random) => [{ kind: "log", prefix: "p", ...(random.chance(0.5) ? { group: 1 } : {}) }],
  (random) => [{ kind: "limit", rate: BigInt(1 + random.below(9)), per: "second", burst: 5 }],
  () => [{ kind: "notrack" }],
  (random) => [
    { kind: "meta", key: random.pick(["mark", "iif", "oif", "l4proto", "protocol", "length"]), to: register(random) },
    { kind: "compare", operator: "equal", from: register(random), value: hostNumber(random.below(3)) },
  ],
  (random) => [
    { kind: "ct", key: random.pick(["state", "status", "mark", "direction"]), to: 0 },
    { kind: "bitwise", from: 0, to: register(random), mask: hostNumber(6), flip: hostNumber(0) },
    { kind: "compare", operator: "different", from: 0, value: hostNumber(0) },
  ],
  (random) => [
    { kind: "immediate", to: register(random), value: hostNumber(random.below(5)) },
    { kind: "set-meta", key: "mark", from: 0 },
  ],
  (random) => [
    { kind: "immediate", to: 0, value: hostNumber(1) },
    { kind: "set-ct", key: random.pick(["mark", "label"]), from: register(random) },
  ],
  (random) => [
    loadPort("destination", 0),
    {
      kind: "range",
      operator: random.pick(["within", "outside"]),
      from: 0,
      first: portValue(80),
      last: random.chance(0.9) ? portValue(90) : portValue(70),
    },
  ],
  randomLookup,
  randomLookup,
  randomLookup,
  randomLookup,
  randomAnonymousLookup,
  randomAnonymousLookup,
  randomNat,
  randomFib,
];

/** Loads addresses and ports into all registers that a key can need. */
function loadKey(random: Random): Expression[] {
  return random.chance(0.9)
    ? [
        { kind: "meta", key: "iifname", to: 0 },
        loadAddress(6, "source", 4),
        { kind: "payload", base: "network", offset: 12, length: 16, to: 8 },
      ]
    : [loadAddress(4, "source", 0)];
}

function randomLookup(random: Random, names: Names): Expression[] {
  const to = random.chance(0.4) ? undefined : random.pick([0, 9, "verdict", "verdict"] as const);
  return [
    ...loadKey(random),
    {
      kind: "lookup",
      set: random.pick(names.sets),
      from: random.chance(0.9) ? 0 : register(random),
      ...(to === undefined ? {} : { to }),
      ...(random.chance(0.2) ? { isInverted: true } : {}),
    },
  ];
}

function randomAnonymousLookup(random: Random, names: Names): Expression[] {
  const ports = random.chance(0.8) ? [80, 443, 8080] : [80, 80];
  if (random.chance(0.5)) {
    const elements = ports.map((port): NftElement => ({ key: portValue(port) }));
    return [loadPort("destination", 0), { kind: "lookup", set: { key: ["inet_service"], elements }, from: 0 }];
  }
  const elements = ports.map((port) => ({ key: portValue(port), data: randomVerdict(random, names) }));
  return [
    loadPort("destination", 0),
    { kind: "lookup", set: { key: ["inet_service"], data: "verdict", elements }, from: 0, to: "verdict" },
  ];
}

function randomNat(random: Random): Expression[] {
  if (random.chance(0.4)) return [{ kind: "masquerade" }];
  const family = random.pick(["ip", "ip6"] as const);
  return [
    { kind: "payload", base: "network", offset: 8, length: 16, to: 0 },
    {
      kind: "nat",
      type: random.pick(["snat", "dnat"]),
      family,
      ...(random.chance(0.9) ? { address: register(random) } : {}),
      ...(random.chance(0.3) ? { port: register(random) } : {}),
    },
  ];
}

function randomFib(random: Random): Expression[] {
  const flags = Object.keys(FIB_FLAG).filter((flag): flag is keyof typeof FIB_FLAG => flag in FIB_FLAG);
  const by = random.chance(0.8)
    ? random.pick([["saddr", "iif"], ["daddr"], ["saddr"], ["daddr", "oif"]] as const)
    : flags.filter((flag) => flag !== "present" && random.chance(0.4));
  return [{ kind: "fib", result: random.pick(["oif", "oifname", "type"]), by, to: 0 }];
}
