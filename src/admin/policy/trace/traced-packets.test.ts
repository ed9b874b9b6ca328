import { describe, expect, test } from "bun:test";
import { identity } from "../../../identity.ts";
import type { KnownRule } from "../../../linux/nftables/read.ts";
import type { TraceEvent } from "../../../linux/nftables/trace.ts";
import { headWords } from "./packet-head.ts";
import { TracedPackets } from "./traced-packets.ts";
import { decisionWords } from "./words.ts";

const MARKING = { family: "inet", name: "marking" } as const;
const SITE = { family: "ip", name: "filter" } as const;
const POLICY = { family: "inet", name: identity.policyTable } as const;
const IPV4 = Uint8Array.fromHex("4500003c000040004006000a0a0000050a000006");
const PORTS = Uint8Array.fromHex("9c400050");

const begin = (packet: number, more: Partial<TraceEvent> = {}): readonly TraceEvent[] => [
  {
    packet,
    kind: "rule",
    table: MARKING,
    chain: "prerouting",
    handle: 4n,
    verdict: "continue",
    networkHeader: IPV4,
    transportHeader: PORTS,
    ...more,
  },
  { packet, kind: "rule", table: MARKING, chain: "prerouting", verdict: "continue" },
  { packet, kind: "policy", table: MARKING, chain: "prerouting", verdict: "accept" },
];
const rule = (packet: number, verdict: "accept" | "drop" | "jump"): TraceEvent => ({
  packet,
  kind: "rule",
  table: SITE,
  chain: "FORWARD",
  handle: 7n,
  verdict,
});

describe("TracedPackets", () => {
  test("a dropped packet is decided at once, with the rule that dropped it last", () => {
    const [packet, ...more] = new TracedPackets(MARKING).round([
      ...begin(1),
      rule(1, "jump"),
      rule(1, "accept"),
      rule(1, "drop"),
    ]);
    expect(headWords(packet?.head)).toBe("TCP 10.0.0.5:40000 -> 10.0.0.6:80");
    expect(packet?.outcome).toBe("dropped");
    expect(packet?.decisions.at(-1)).toEqual({ table: SITE, chain: "FORWARD", handle: 7n, verdict: "drop" });
    expect(more).toEqual([]);
  });

  test("a rejected packet was decided by the rule that sent it to the rejections", () => {
    const denial = { ...rule(1, "jump"), table: POLICY, chain: "pi_x", handle: 9n, verdict: "goto" } as const;
    const reset = { ...rule(1, "drop"), table: POLICY, chain: "rejected", handle: 3n };
    const [packet] = new TracedPackets(MARKING).round([...begin(1), denial, reset]);
    expect(packet?.outcome).toBe("rejected");
    expect(packet?.decisions.at(-1)).toEqual({ table: POLICY, chain: "pi_x", handle: 9n, verdict: "drop" });
  });

  test("a packet has passed when nothing more is reported of it", () => {
    const packets = new TracedPackets(MARKING);
    const rounds = [[...begin(1)], [rule(1, "accept")], [], [], [], []].map((events) => packets.round(events).length);
    expect(rounds).toEqual([0, 0, 0, 0, 0, 1]);
  });

  test("the policy of a base chain can drop, and its accept is no decision", () => {
    const policy = (verdict: "accept" | "drop"): TraceEvent => ({
      packet: 1,
      kind: "policy",
      table: SITE,
      chain: "FORWARD",
      verdict,
    });
    const [packet] = new TracedPackets(MARKING).round([...begin(1), policy("accept"), policy("drop")]);
    expect(packet?.decisions).toEqual([{ table: SITE, chain: "FORWARD", verdict: "drop" }]);
  });

  test("ignores packets of other tracers, separates packets with one number, and knows those of the host to itself", () => {
    const packets = new TracedPackets(MARKING);
    expect(packets.round([rule(9, "drop")])).toEqual([]);
    expect(packets.round([...begin(1), ...begin(1)])).toHaveLength(1);
    expect(packets.round(begin(1, { chain: "output" }))).toHaveLength(0);
    expect(packets.rest()).toHaveLength(1);
  });

  test("reads IPv6, and packets without ports", () => {
    const networkHeader = Uint8Array.fromHex(
      `600000000008${"3a"}40${"fd50".padEnd(30, "0")}05${"fd50".padEnd(30, "0")}06`,
    );
    const packets = new TracedPackets(MARKING);
    packets.round(begin(1, { networkHeader }));
    expect(headWords(packets.rest()[0]?.head)).toBe("ICMPv6 fd50::5 -> fd50::6");
  });
});

describe("decisionWords()", () => {
  const known = (more: Partial<KnownRule>): KnownRule => ({ chain: "c", handle: 7n, expressions: [], ...more });
  const CASES = [
    [
      POLICY,
      known({ comment: "shop/db egress 1" }),
      'NetworkPolicy "shop/db", egress rule 2 (spec.egress[1])',
      "policy",
    ],
    [
      POLICY,
      known({ expressions: [{ kind: "ct", key: "state", to: 0 }] }),
      "connection tracking: it belongs to no connection (state invalid)",
      "policy",
    ],
    [
      { family: "inet", name: identity.guardTable } as const,
      known({}),
      `rule 1 (handle 7) of chain "c" of table inet "${identity.guardTable}"`,
      "product",
    ],
    [
      SITE,
      known({ comment: "no guests" }),
      'rule 1 (handle 7) of chain "c" of table ip "filter" ("no guests"), which belongs to another program',
      "other",
    ],
  ] as const;
  test.each(CASES)("in %j", (table, rule, by, owner) => {
    const decision = { table, chain: "c", handle: 7n, verdict: "drop" } as const;
    expect(decisionWords(decision, [rule])).toMatchObject({ by, owner });
  });

  test("names a chain whose policy drops, and a rule that is gone", () => {
    const decision = { table: SITE, chain: "c", verdict: "drop" } as const;
    expect(decisionWords(decision, []).by).toStartWith('the policy of chain "c" of table ip "filter"');
    expect(decisionWords({ ...decision, handle: 1n }, []).by).toContain("gone meanwhile");
  });
});
