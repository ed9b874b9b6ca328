import { describe, expect, test } from "bun:test";
import { address, prefix } from "../../test/support/ip.ts";
import { ROUTE_PROTOCOL, type Route } from "../linux/rtnetlink/route.ts";
import { compareRoutes, identityOf, type RouteDifference } from "./compare-routes.ts";

const OWN = ROUTE_PROTOCOL.own;
const route = (destination: string, linkIndex: number, more: Partial<Route> = {}): Route => ({
  destination: prefix(destination),
  linkIndex,
  protocol: OWN,
  ...more,
});
const isOwn = ({ protocol, linkIndex = 0 }: Route) => protocol === OWN && linkIndex < 10;
const compare = (wanted: readonly Route[], routes: readonly Route[]) => compareRoutes(wanted, { routes, isOwn });

const WANTED = route("10.0.0.5/32", 3);
const CASES: readonly (readonly [
  title: string,
  present: readonly Route[],
  kinds: readonly RouteDifference["kind"][],
])[] = [
  ["nothing is missing if the route is there", [route("10.0.0.5/32", 3)], []],
  ["with whatever protocol, scope and MTU", [route("10.0.0.5/32", 3, { protocol: 4, scope: "link", mtu: 1400 })], []],
  ["a lost route is missing", [], ["missing"]],
  ["also if there is one in another table", [route("10.0.0.5/32", 3, { table: 100, protocol: 3 })], ["missing"]],
  ["also if there is one of another priority", [route("10.0.0.5/32", 3, { priority: 5, protocol: 3 })], ["missing"]],
  ["a route of ours to another link is changed", [route("10.0.0.5/32", 4)], ["changed"]],
  ["a route by a gateway is changed", [route("10.0.0.5/32", 3, { gateway: address("10.0.0.1") })], ["changed"]],
  ["a blackhole made by hand is changed", [route("10.0.0.5/32", 1, { kind: "blackhole", protocol: 3 })], ["changed"]],
  ["a route made by hand to a foreign link is changed", [route("10.0.0.5/32", 20, { protocol: 3 })], ["changed"]],
  ["a route of a routing daemon is a clash", [route("10.0.0.5/32", 20, { protocol: 12 })], ["clash"]],
  ["our protocol on a foreign link is a clash", [route("10.0.0.5/32", 20)], ["clash"]],
  ["a route of ours that nobody wants is stale", [WANTED, route("10.0.0.6/32", 3)], ["stale"]],
  ["one of another program is not", [WANTED, route("10.0.0.6/32", 3, { protocol: 3 }), route("10.0.0.7/32", 20)], []],
];

describe("compareRoutes()", () => {
  for (const [title, present, kinds] of CASES) {
    test(title, () => {
      expect(compare([WANTED], present).map(({ kind }) => kind)).toEqual([...kinds]);
    });
  }

  test("knows the default priority of each family", () => {
    const present = [route("10.0.0.5/32", 3, { priority: 0 }), route("fd00::5/128", 3, { priority: 1024 })];
    expect(compare([WANTED, route("fd00::5/128", 3)], present)).toEqual([]);
  });

  test("of two IPv6 routes in one place, the one of ours that nobody wants is stale", () => {
    const [wanted, second] = [route("fd00::5/128", 3), route("fd00::5/128", 4)];
    expect(compare([wanted], [second, wanted])).toEqual([{ kind: "stale", present: second }]);
    expect(compare([wanted], [second])).toEqual([{ kind: "changed", wanted, present: second }]);
  });
});

describe("identityOf()", () => {
  test("distinguishes kind, place and link", () => {
    const texts = [
      identityOf({ kind: "missing", wanted: WANTED }),
      identityOf({ kind: "stale", present: WANTED }),
      identityOf({ kind: "missing", wanted: route("10.0.0.5/32", 4) }),
      identityOf({ kind: "missing", wanted: route("10.0.0.6/32", 3) }),
    ];
    expect(new Set(texts).size).toBe(4);
    expect(identityOf({ kind: "missing", wanted: { ...WANTED, priority: 0 } })).toBe(texts[0] ?? "");
  });
});
