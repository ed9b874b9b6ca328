import { describe, expect, test } from "bun:test";
import { blockFact, deleteFact, nodeFact, poolFact, putFact } from "../../../test/support/routing-facts.ts";
import { type FactChanges, RoutePlanner } from "../../routing/planner.ts";
import { AppliedPlan } from "./applied-plan.ts";
import type { RouteLinks } from "./planned-route.ts";

const LINKS: RouteLinks = { tunnels: new Map([["vxlan4", 9]]), towards: () => 2 };
const NODE_B = putFact("b", nodeFact("b", { ipv4: "192.168.5.2/24", vxlan4: "10.60.0.64" }));
const CLUSTER: FactChanges = {
  nodes: [putFact("a", nodeFact("a", { ipv4: "192.168.5.1/24", vxlan4: "10.60.0.0" }))],
  pools: [putFact("p", poolFact("p", "10.60.0.0/16", "vxlan"))],
  blocks: [putFact("a4", blockFact("10.60.0.0/26", "a")), putFact("b4", blockFact("10.60.0.64/26", "b"))],
};

function openPlan(links = LINKS) {
  const planner = new RoutePlanner("a", { isEnabled: true, isBgpEnabled: false });
  const applied = new AppliedPlan();
  const follow = (changes: FactChanges) => {
    const { steps, isComplete } = applied.follow(planner.plan, planner.update(changes), links);
    return { actions: steps.map(({ request }) => request.action), isComplete };
  };
  planner.update(CLUSTER);
  applied.replace(planner.plan, new Set());
  return { applied, follow };
}

describe("AppliedPlan", () => {
  test("sets entries before the routes that need them, and removes them after", () => {
    const { follow, applied } = openPlan();
    expect(follow({ nodes: [NODE_B] }).actions).toEqual([
      "set forwarding entry 66:04:00:00:00:62 of link 9",
      "set neighbour 10.60.0.64 of link 9",
      "add route 10.60.0.64/26",
    ]);
    expect([applied.routeCount, applied.peerCount]).toEqual([2, 1]);
    expect(follow({ nodes: [deleteFact("b")] }).actions).toEqual([
      "delete route 10.60.0.64/26",
      "delete neighbour 10.60.0.64 of link 9",
      "delete forwarding entry 66:04:00:00:00:62 of link 9",
    ]);
    expect([applied.routeCount, applied.peerCount]).toEqual([1, 0]);
  });

  test("replaces a route that it has set, and adds one in a place that may be another program's", () => {
    const { follow } = openPlan();
    follow({ nodes: [NODE_B] });
    const direct = { pools: [putFact("p", poolFact("p", "10.60.0.0/16", "vxlan-cross-subnet"))] };
    expect(follow(direct).actions).toEqual(["replace route 10.60.0.64/26"]);
  });

  test("keeps the entries of an address that has passed to another node", () => {
    const { follow } = openPlan();
    follow({ nodes: [NODE_B] });
    const heir = putFact("c", nodeFact("c", { ipv4: "192.168.5.3/24", vxlan4: "10.60.0.64" }));
    const held = { "10.60.0.64": "c" };
    const block = putFact("b", blockFact("10.60.0.64/26", "b", held, held));
    expect(follow({ nodes: [heir], blocks: [block] }).actions).toContain("set neighbour 10.60.0.64 of link 9");
    expect(follow({ nodes: [deleteFact("b")] }).actions).not.toContain("delete neighbour 10.60.0.64 of link 9");
  });

  test("says if there is no link for a route", () => {
    const { follow } = openPlan({ tunnels: new Map(), towards: () => undefined });
    expect(follow({ nodes: [NODE_B] })).toEqual({ actions: [], isComplete: false });
  });
});
