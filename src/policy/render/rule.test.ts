import { describe, expect, test } from "bun:test";
import { parsePrefixOrAddress } from "../../ip/prefix.ts";
import type { Expression } from "../../linux/nftables/expression.ts";
import type { EffectivePeer, EffectiveRule } from "../effective-rule.ts";
import { type RangeList, setName } from "../table/names.ts";
import { LOG_LIMIT, renderRule } from "./rule.ts";

const ANYBODY: EffectivePeer = { notNets: [], members: [], notMembers: [] };
const SELECTED = { kind: "selected", selector: "has(app)" } as const;
const WEB = { kind: "named port", selector: "has(app)", protocol: 6, names: ["web"] } as const;

interface Options {
  readonly hasPrefixes?: boolean;
  readonly hasSidecars?: boolean;
  readonly onAllow?: readonly Expression[];
}

function render(rule: Partial<EffectiveRule>, { hasPrefixes = false, hasSidecars = true, onAllow = [] }: Options = {}) {
  const whole: EffectiveRule = { action: "Allow", source: ANYBODY, destination: ANYBODY, ...rule };
  const context = {
    hasPrefixes: () => hasPrefixes,
    nameOfRanges: ({ key, ranges }: RangeList) => `${ranges.length} of ${key}`,
    rest: "rest",
    comment: "red/x ingress 0",
    logPrefix: "red/x ",
    logLimit: LOG_LIMIT,
    sidecars: hasSidecars ? "sidecars" : undefined,
    onAllow,
    mayReject: true,
  };
  return renderRule(whole, context);
}

/** The sets that each rendered rule looks up; `!` if it must not be in it. */
function lookups(rules: ReturnType<typeof render>): readonly (readonly string[])[] {
  return rules.map(({ expressions }) =>
    expressions.flatMap((each) =>
      each.kind === "lookup" && typeof each.set === "string" ? [`${each.isInverted ? "!" : ""}${each.set}`] : [],
    ),
  );
}

const nets = (...texts: readonly string[]) => texts.flatMap((text) => parsePrefixOrAddress(text) ?? []);

describe("renderRule()", () => {
  test("writes one rule for both families if nothing depends on the family", () => {
    expect(render({ protocol: 6, destination: { ...ANYBODY, ports: { ranges: [{ first: 80, last: 80 }] } } })).toEqual([
      {
        comment: "red/x ingress 0",
        expressions: [
          { kind: "meta", key: "l4proto", to: 0 },
          { kind: "compare", operator: "equal", from: 0, value: Uint8Array.of(6) },
          { kind: "payload", base: "transport", offset: 2, length: 2, to: 0 },
          { kind: "compare", operator: "equal", from: 0, value: Uint8Array.of(0, 80) },
          { kind: "counter" },
          { kind: "verdict", verdict: { kind: "accept" } },
        ],
      },
    ]);
  });

  test("looks up the outgoing interface among those with a sidecar if the rule is about HTTP requests", () => {
    const [rule, ...more] = render({ protocol: 6, http: { methods: ["GET"] } });

    expect(more).toEqual([]);
    expect(rule?.expressions.slice(2)).toEqual([
      { kind: "meta", key: "oifname", to: 0 },
      { kind: "lookup", set: "sidecars", from: 0 },
      { kind: "counter" },
      { kind: "verdict", verdict: { kind: "accept" } },
    ]);
  });

  test("writes nothing for a rule about HTTP requests where there are no sidecars", () => {
    expect(render({ protocol: 6, http: {} }, { hasSidecars: false })).toEqual([]);
  });

  test("writes one rule for each family of a set", () => {
    const rules = render({ source: { ...ANYBODY, members: [SELECTED] } });
    expect(lookups(rules)).toEqual([[setName(SELECTED, 4)], [setName(SELECTED, 6)]]);
  });

  test("writes a rule for the networks of a set too, and tests both of a set that must not match", () => {
    const positive = render({ family: 4, source: { ...ANYBODY, members: [SELECTED] } }, { hasPrefixes: true });
    expect(lookups(positive)).toEqual([[setName(SELECTED, 4)], [setName(SELECTED, 4, "prefixes")]]);
    const negative = render({ family: 4, source: { ...ANYBODY, notMembers: [SELECTED] } }, { hasPrefixes: true });
    expect(lookups(negative)).toEqual([[`!${setName(SELECTED, 4)}`, `!${setName(SELECTED, 4, "prefixes")}`]]);
  });

  test("writes one rule for numbers and one for each name of a port", () => {
    const ports = { ranges: [{ first: 80, last: 90 }], named: WEB };
    expect(lookups(render({ family: 4, protocol: 6, destination: { ...ANYBODY, ports } }))).toEqual([
      [],
      [setName(WEB, 4)],
    ]);
    expect(lookups(render({ family: 4, protocol: 6, destination: { ...ANYBODY, notPorts: ports } }))).toEqual([
      [`!${setName(WEB, 4)}`],
    ]);
  });

  test("looks up long lists of ports and networks in a set, and compares short ones", () => {
    const odd = (count: number) => Array.from({ length: count }, (_, index) => ({ first: 2 * index, last: 2 * index }));
    const ofPorts = (count: number) => ({ ...ANYBODY, ports: { ranges: odd(count) } });
    expect(lookups(render({ protocol: 6, destination: ofPorts(9) }))).toEqual([["9 of inet_service"]]);
    expect(lookups(render({ protocol: 6, destination: ofPorts(8) }))).toEqual(Array.from({ length: 8 }, () => []));
    const many = nets(...Array.from({ length: 9 }, (_, index) => `10.0.${2 * index}.0/24`));
    expect(lookups(render({ source: { ...ANYBODY, nets: many } }))).toEqual([["9 of ipv4_addr"]]);
    expect(lookups(render({ family: 4, source: { ...ANYBODY, notNets: many } }))).toEqual([["!9 of ipv4_addr"]]);
  });

  test("writes no rule for a family in which no network can match", () => {
    expect(render({ source: { ...ANYBODY, nets: nets("10.0.0.0/8") } })).toHaveLength(1);
    expect(render({ family: 6, source: { ...ANYBODY, nets: nets("10.0.0.0/8") } })).toEqual([]);
    expect(render({ source: { ...ANYBODY, notNets: nets("10.0.0.0/8") } })).toHaveLength(2);
  });

  test("continues Pass at the rest, and marks allowed packets before it accepts them", () => {
    const verdicts = (rules: ReturnType<typeof render>) => rules.map(({ expressions }) => expressions);
    expect(verdicts(render({ action: "Pass" }))).toEqual([
      [{ kind: "counter" }, { kind: "verdict", verdict: { kind: "goto", chain: "rest" } }],
    ]);
    expect(verdicts(render({}, { onAllow: [{ kind: "notrack" }] }))).toEqual([
      [{ kind: "counter" }, { kind: "notrack" }, { kind: "verdict", verdict: { kind: "accept" } }],
    ]);
    expect(verdicts(render({ action: "Deny" }, { onAllow: [{ kind: "notrack" }] }))).toEqual([
      [{ kind: "counter" }, { kind: "verdict", verdict: { kind: "drop" } }],
    ]);
  });

  test("counts what Log matches, and writes at most ten lines a second of it", () => {
    expect(render({ action: "Log" }).map(({ expressions }) => expressions)).toEqual([
      [{ kind: "counter" }, { kind: "limit", rate: 10n, per: "second", burst: 50 }, { kind: "log", prefix: "red/x " }],
    ]);
  });

  test("rules do not share what is appended to them", () => {
    const ports = { ranges: [{ first: 80, last: 80 }], named: WEB };
    const first = render({ protocol: 6, destination: { ...ANYBODY, ports } });
    const second = render({ protocol: 6, destination: { ...ANYBODY, ports } });
    expect(second).toEqual(first);
  });

  test("writes few rules if many short lists combine: each is a set then", () => {
    const list = nets("10.0.0.0/24", "10.2.0.0/24", "10.4.0.0/24");
    const ports = { ranges: [1, 3, 5].map((port) => ({ first: port, last: port })), named: WEB };
    const peer = { ...ANYBODY, nets: list, ports };
    expect(render({ family: 4, protocol: 6, destination: peer })).toHaveLength(12);

    const both = lookups(render({ family: 4, protocol: 6, source: peer, destination: peer }));
    const [addresses, numbers, names] = ["3 of ipv4_addr", "3 of inet_service", setName(WEB, 4)];
    expect(both).toEqual(
      [numbers, names].flatMap((source) =>
        [numbers, names].map((destination) => [addresses, source, addresses, destination]),
      ),
    );
  });
});
