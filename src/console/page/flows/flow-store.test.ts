import { describe, expect, test } from "bun:test";
import { FlowStore } from "./flow-store.ts";
import { sampleFlow } from "./sample-flow.ts";

const flow = (id: string, start: number, verdict: "allowed" | "denied" = "allowed") =>
  sampleFlow({ id, start, verdict });
const idsOf = (store: FlowStore, order: "denied first" | "newest first" = "newest first") =>
  store.rows(order).map(({ id }) => id);

describe("FlowStore", () => {
  test("has each flow once, as it came last", () => {
    const store = new FlowStore();
    store.add([flow("a", 1), flow("b", 2)]);
    store.add([sampleFlow({ id: "a", start: 1, state: "ended" })]);

    expect(store.size).toBe(2);
    expect(store.get("a")?.state).toBe("ended");
  });

  test("sorts by time, in whatever order flows come", () => {
    const store = new FlowStore();
    store.add([flow("c", 3), flow("a", 1)]);
    store.add([flow("b", 2)]);

    expect(idsOf(store)).toEqual(["c", "b", "a"]);
  });

  test("puts denied flows first", () => {
    const store = new FlowStore();
    store.add([flow("a", 1, "denied"), flow("b", 2), flow("c", 3, "denied"), flow("d", 4)]);

    expect(idsOf(store, "denied first")).toEqual(["c", "a", "d", "b"]);
  });

  test("drops the oldest of too many, and counts them", () => {
    const store = new FlowStore(2);
    store.add([flow("a", 1), flow("b", 2), flow("c", 3)]);

    expect(idsOf(store)).toEqual(["c", "b"]);
    expect([store.dropped, store.get("a")]).toEqual([1, undefined]);
  });

  test("takes 100,000 flows, and more of them each quarter of a second, in far less than that", () => {
    const store = new FlowStore();
    store.add(Array.from({ length: 100_000 }, (_, index) => flow(`old ${index}`, index)));
    const begin = performance.now();
    for (let round = 0; round < 10; round++) {
      store.add(Array.from({ length: 1_000 }, (_, index) => flow(`new ${round} ${index}`, 100_000 + round)));
      store.rows("denied first");
    }

    expect(store.size).toBe(100_000);
    expect((performance.now() - begin) / 10).toBeLessThan(125);
  });
});
