import { describe, expect, test } from "bun:test";
import { blockFact, nodeFact, poolFact, putFact } from "../../../test/support/routing-facts.ts";
import type { PlanChange } from "../../routing/plan.ts";
import { type FactChanges, RoutePlanner } from "../../routing/planner.ts";
import { followNetwork } from "./follow-network.ts";
import type { NetworkKeeper } from "./network-keeper.ts";

const BLOCKS: FactChanges = { blocks: [putFact("b", blockFact("10.0.0.0/26", "node-a"))] };
const RESOURCES: FactChanges = {
  nodes: [putFact("n", nodeFact("node-a", { ipv4: "192.0.2.1/24" }))],
  pools: [putFact("p", poolFact("blue", "10.0.0.0/16", "none"))],
};
const MORE: FactChanges = { blocks: [putFact("c", blockFact("10.0.0.64/26", "node-a"))] };

/** Two sources; the second one sends its facts when those of the first have been followed. */
function sourcesOf(first: readonly FactChanges[], second: readonly FactChanges[]) {
  const { promise, resolve } = Promise.withResolvers<void>();
  async function* sendFirst() {
    yield* first;
    resolve();
  }
  async function* sendSecond() {
    await promise;
    yield* second;
  }
  return [sendFirst(), sendSecond()];
}

describe("followNetwork()", () => {
  test("nothing is planned before all sources have sent something, and the first change is everything", async () => {
    const stop = new AbortController();
    const planned: (readonly string[])[] = [];
    const updated: PlanChange[] = [];
    const keeper = {
      problems: new Set<string>(),
      isDoubtful: false,
      distrust() {},
      notice() {},
      look: () => "settled",
      update(_: unknown, change: PlanChange) {
        updated.push(change);
        return "settled";
      },
    } as unknown as NetworkKeeper;

    await followNetwork(sourcesOf([BLOCKS], [RESOURCES, MORE]), {
      planner: new RoutePlanner("node-a", { isEnabled: true, isBgpEnabled: true }),
      keeper,
      async *events() {},
      isGuardSuspect: () => false,
      planned(_, change) {
        planned.push([...change.announced, ...change.routes, ...change.senders]);
        if (planned.length === 2) stop.abort();
      },
      applied() {},
      report() {},
      wait: (_, signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
      signal: stop.signal,
    });

    expect(planned).toEqual([
      ["10.0.0.0/26", "10.0.0.0/26", "192.0.2.1"],
      ["10.0.0.64/26", "10.0.0.64/26"],
    ]);
    expect(updated).toHaveLength(2);
  });
});
