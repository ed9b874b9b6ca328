/** Random batches of the product's own changes: few names and keys, so that they meet often. For tests. */
import { rangeElements } from "../../../src/linux/nftables/intervals.ts";
import type { BaseChain, NftChain, NftChange, TableReference } from "../../../src/linux/nftables/ruleset.ts";
import type { NftElement, NftSet, SetShape } from "../../../src/linux/nftables/set.ts";
import { concatenate, hostNumber, interfaceValue, portValue } from "../../../src/linux/nftables/value.ts";
import type { Random } from "../../schedule/random.ts";
import { randomExpressions, randomVerdict } from "./random-expressions.ts";
import { hasOrderedKeys, type ModelRule, type ModelSet, type NetfilterState, tableKey } from "./state.ts";

const TABLES: readonly TableReference[] = [
  { family: "inet", name: "x" },
  { family: "inet", name: "x" },
  { family: "inet", name: "x" },
  { family: "ip", name: "x" },
  { family: "ip6", name: "y" },
];

const SHAPES: Readonly<Record<string, SetShape>> = {
  addresses: { key: ["ipv4_addr"] },
  ports: { key: ["inet_service"] },
  verdicts: { key: ["ifname"], data: "verdict" },
  owners: { key: ["ipv4_addr", "inet_service"], data: ["ipv4_addr"] },
  ranges: { key: ["ipv4_addr"], holdsIntervals: true },
  portranges: { key: ["inet_service"], holdsIntervals: true },
  guarded: { key: ["iface_index", "ipv4_addr"], holdsIntervals: true },
};

const NAMES = { chains: ["a", "b", "c", "d", "in", "nat"], sets: Object.keys(SHAPES) } as const;

/** Creates most of what later batches refer to. */
export function firstBatch(random: Random): NftChange[] {
  return TABLES.slice(2).flatMap((table): NftChange[] => [
    { kind: "add-table", table, ...(random.chance(0.3) ? { comment: "first" } : {}) },
    ...NAMES.chains
      .filter(() => random.chance(0.9))
      .map((name): NftChange => ({ kind: "add-chain", table, chain: chainNamed(random, name) })),
    ...NAMES.sets
      .filter(() => random.chance(0.8))
      .map((name): NftChange => ({ kind: "add-set", table, set: setNamed(random, name) })),
  ]);
}

export function randomKind(random: Random): NftChange["kind"] {
  return random.pick(KINDS);
}

/** Often about rules and elements that are in this state. */
export function randomChange(random: Random, kind: NftChange["kind"], state: NetfilterState): NftChange {
  const table = random.pick(TABLES);
  const chain = random.pick(NAMES.chains);
  const set = random.pick(NAMES.sets);
  const known = state.tables.get(tableKey(table.family, table.name));
  switch (kind) {
    case "add-table":
    case "create-table":
      return { kind, table, ...(random.chance(0.3) ? { comment: random.pick(["one", "two"]) } : {}) };
    case "delete-table":
      return { kind, table };
    case "add-chain":
      return { kind, table, chain: chainNamed(random, chain) };
    case "delete-chain":
    case "flush-chain":
      return { kind, table, chain };
    case "add-rule":
      return {
        kind,
        table,
        rule: {
          chain,
          expressions: randomExpressions(random, NAMES),
          ...(random.chance(0.3) ? { comment: "rule" } : {}),
        },
      };
    case "delete-rule":
      return { kind, table, chain, handle: randomHandle(random, known?.chains.get(chain)?.rules ?? []) };
    case "add-set":
      return { kind, table, set: setNamed(random, set) };
    case "delete-set":
    case "flush-set":
      return { kind, table, set };
    case "add-elements":
    case "create-elements":
      return { kind, table, set, elements: randomElements(random, set) };
    case "delete-elements":
    case "destroy-elements":
      return { kind, table, set, elements: someOf(random, known?.sets.get(set)) ?? randomElements(random, set) };
  }
}

function randomHandle(random: Random, rules: readonly ModelRule[]): bigint {
  return rules.length > 0 && random.chance(0.8) ? random.pick(rules).handle : BigInt(1 + random.below(30));
}

/** Both ends of a range, if it has two. */
function someOf(random: Random, set: ModelSet | undefined): readonly NftElement[] | undefined {
  if (set === undefined || set.elements.size === 0 || random.chance(0.3)) return undefined;
  if (!hasOrderedKeys(set)) {
    const chosen = [...set.elements.values()].filter(() => random.chance(0.5));
    return chosen.length === 0 ? undefined : chosen;
  }
  const at = random.below(set.ordered.length);
  const [above, chosen, below] = [set.ordered[at - 1], set.ordered[at], set.ordered[at + 1]];
  if (chosen?.interval === "end") return below === undefined ? undefined : [below, chosen];
  if (chosen === undefined) return undefined;
  return above?.interval === "end" ? [chosen, above] : [chosen];
}

const WEIGHTS: Readonly<Record<NftChange["kind"], number>> = {
  "add-table": 2,
  "create-table": 1,
  "delete-table": 1,
  "add-chain": 8,
  "delete-chain": 5,
  "flush-chain": 3,
  "add-rule": 26,
  "delete-rule": 6,
  "add-set": 8,
  "delete-set": 5,
  "flush-set": 2,
  "add-elements": 20,
  "create-elements": 4,
  "delete-elements": 10,
  "destroy-elements": 4,
};

const KINDS = Object.entries(WEIGHTS).flatMap(([kind, weight]) =>
  new Array<NftChange["kind"]>(weight).fill(kind as NftChange["kind"]),
);

function chainNamed(random: Random, name: string): NftChain {
  const comment = random.chance(0.2) ? { comment: "chain" } : {};
  const policy = random.pick(["accept", "drop"] as const);
  if (random.chance(0.05)) return { name, base: randomBase(random), ...comment };
  if (name === "in") return { name, base: { type: "filter", hook: "input", priority: 0, policy }, ...comment };
  if (name === "nat")
    return { name, base: { type: "nat", hook: "postrouting", priority: 100, policy: "accept" }, ...comment };
  return { name, ...comment };
}

function randomBase(random: Random): BaseChain {
  return {
    type: random.pick(["filter", "nat", "route"]),
    hook: random.pick(["prerouting", "input", "forward", "output", "postrouting"]),
    priority: random.pick([-300, -199, 0, 100]),
    policy: random.pick(["accept", "drop"]),
  };
}

function setNamed(random: Random, name: string): NftSet {
  const shape = SHAPES[random.chance(0.95) ? name : random.pick(NAMES.sets)] ?? { key: ["mark"] };
  return { name, ...shape, ...(random.chance(0.2) ? { comment: "set" } : {}) };
}

function randomElements(random: Random, set: string): readonly NftElement[] {
  const shape = SHAPES[random.chance(0.97) ? set : random.pick(NAMES.sets)] ?? { key: ["mark"] };
  return Array.from({ length: 1 + random.below(4) }, () => randomElement(random, shape)).flat();
}

const byte = (random: Random) => Uint8Array.of(10, 0, 0, random.pick([0, 1, 2, 3, 4, 8, 16, 255]));

function randomElement(random: Random, shape: SetShape): readonly NftElement[] {
  const elements = regularElements(random, shape);
  return random.chance(0.97) ? elements : elements.map((element) => spoiled(random, element));
}

function regularElements(random: Random, { key, data, holdsIntervals }: SetShape): readonly NftElement[] {
  if (holdsIntervals === true) return key.length > 1 ? [guardedRange(random)] : ranges(random, key[0] === "ipv4_addr");
  const comment = random.chance(0.2) ? { comment: "element" } : {};
  if (data === "verdict") {
    const name = random.pick(["eth0", "eth1", "eth2"]);
    return [{ key: interfaceValue(name), data: randomVerdict(random, NAMES), ...comment }];
  }
  if (data !== undefined)
    return [{ key: concatenate(byte(random), portValue(random.pick([80, 81]))), data: byte(random), ...comment }];
  return [{ key: key[0] === "inet_service" ? portValue(random.pick([80, 81, 82])) : byte(random), ...comment }];
}

function guardedRange(random: Random): NftElement {
  const link = hostNumber(1 + random.below(2));
  const key = concatenate(link, byte(random));
  return random.chance(0.1) ? { key } : { key, keyEnd: concatenate(link, byte(random)) };
}

/** No two end at the same key: the kernel does not see that those overlap. */
const RANGES = [
  [0, 3],
  [4, 7],
  [2, 5],
  [8, 15],
  [0, 14],
  [16, 255],
] as const;

function ranges(random: Random, isAddress: boolean): readonly NftElement[] {
  const [first, last] = random.pick(RANGES);
  if (isAddress) return rangeElements([{ first: Uint8Array.of(10, 0, 0, first), last: Uint8Array.of(10, 0, 0, last) }]);
  return rangeElements([{ first: portValue(first), last: portValue(last === 255 ? 0xffff : last) }]);
}

function spoiled(random: Random, element: NftElement): NftElement {
  const { data, ...rest } = element;
  switch (random.below(6)) {
    case 0:
      return { ...element, key: element.key.subarray(1) };
    case 1:
      return rest;
    case 2:
      return { ...rest, data: Uint8Array.of(1, 2, 3, 4) };
    case 3:
      return { ...rest, data: { kind: "accept" } };
    case 4:
      return { ...element, keyEnd: element.key };
    default:
      return { ...element, interval: "end" };
  }
}
