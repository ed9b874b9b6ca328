import { describe, expect, test } from "bun:test";
import { type KnownRouting, ROUTING_STATE_ANNOTATION, readRoutingState } from "../../model/routing-state.ts";
import { RoutingAnnotation } from "./routing-annotation.ts";

const SECOND = 1_000;
const WELL: KnownRouting = { sessions: { wanted: 2, established: 2 }, down: [], problems: [] };
const DOWN: KnownRouting = { ...WELL, sessions: { wanted: 2, established: 1 } };
const NOTHING: KnownRouting = { down: [], problems: [] };

/** An agent that looks each five seconds, and the Node that it writes to. */
function agent(annotations: Readonly<Record<string, string>> = {}, peers = 0) {
  const site = { known: WELL as KnownRouting | undefined, node: annotations, time: 0, writes: [] as number[] };
  const annotation = new RoutingAnnotation({
    ...{ known: async () => site.known, peers: () => peers, random: () => 0.5 },
    ...{ elapsed: () => site.time, now: () => new Date(site.time) },
  });
  const pass = async (milliseconds: number, each: () => void = () => {}) => {
    for (const end = site.time + milliseconds; site.time < end; site.time += 5 * SECOND) {
      each();
      await annotation.learn();
      const after = annotation.isDue(site.node) ? annotation.annotated(site.node) : site.node;
      if (after === site.node) continue;
      site.node = { ...after };
      site.writes.push(site.time);
      annotation.written();
    }
  };
  return Object.assign(site, { pass });
}

describe("RoutingAnnotation", () => {
  test("is written once it lasts, and never again while nothing changes", async () => {
    const site = agent({ other: "kept" });
    await site.pass(86_400 * SECOND);

    expect(site.writes).toEqual([10 * SECOND]);
    expect(readRoutingState(site.node)).toMatchObject({ at: new Date(10 * SECOND).toISOString(), ...WELL });
    expect(site.node["other"]).toBe("kept");
  });

  test("is not written for what passes by, nor by the next agent that finds the same", async () => {
    const site = agent();
    await site.pass(60 * SECOND);
    site.known = DOWN;
    await site.pass(5 * SECOND);
    site.known = WELL;
    await site.pass(60 * SECOND);
    expect(site.writes).toHaveLength(1);

    const next = agent(site.node);
    await next.pass(3_600 * SECOND);
    expect(next.writes).toEqual([]);
  });

  test("is written at most once in 30 seconds while it goes on changing, and once in 5 minutes in the end", async () => {
    const site = agent();
    let turn = 0;
    await site.pass(3_600 * SECOND, () => {
      turn += 1;
      site.known = { ...DOWN, problems: [{ state: "failed", message: `reason ${Math.floor(turn / 4)}` }] };
    });
    const pauses = site.writes.slice(1).map((at, index) => at - (site.writes[index] ?? 0));

    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(30 * SECOND);
    expect(pauses.at(-1)).toBeGreaterThanOrEqual(300 * SECOND);
    expect(site.writes.length).toBeLessThan(20);
  });

  test("is cleared when the node leaves BGP, and stays while nothing is known", async () => {
    const site = agent();
    await site.pass(60 * SECOND);
    site.known = undefined;
    await site.pass(600 * SECOND);
    expect(Object.keys(site.node)).toEqual([ROUTING_STATE_ANNOTATION]);

    site.known = NOTHING;
    await site.pass(60 * SECOND);
    expect(site.node).toEqual({});
    expect(site.writes).toHaveLength(2);
  });

  test("replaces what cannot be read", async () => {
    const site = agent({ [ROUTING_STATE_ANNOTATION]: "garbage" });
    await site.pass(60 * SECOND);

    expect(readRoutingState(site.node)).toMatchObject(WELL);
  });

  test("spreads the writes of a large cluster", async () => {
    const site = agent({}, 5_000);
    await site.pass(600 * SECOND);

    expect(site.writes).toEqual([135 * SECOND]);
  });
});
