import { describe, expect, test } from "bun:test";
import { agentsHearOfDatastore, noAgentGoesBack, watchesAreBegunWithPauses } from "./followed-revisions.ts";
import type { World } from "./invariant.ts";

const EMPTY: World = { now: 0, records: { under: () => [] } as never, pods: new Map(), nodes: new Map() };

function withSeen(seenRevisions: Readonly<Record<string, string>> | undefined): World {
  const host = { seenRevisions: seenRevisions && JSON.stringify(seenRevisions) } as never;
  const node = { name: "node-1", isRegistered: true, attachments: new Map(), host };
  return { ...EMPTY, nodes: new Map([["node-1", node]]) };
}

describe("noAgentGoesBack()", () => {
  test("a lower revision is a violation, unless the machine was started again", () => {
    const { check } = noAgentGoesBack();
    const found = [
      { a: "7" },
      { a: "9", b: "3" },
      undefined,
      { a: "2" },
      { a: "2", b: "9" },
      { a: "2", b: "10" },
    ].flatMap((seen) => check(withSeen(seen)));

    expect(found).toEqual([]);
    expect(check(withSeen({ a: "1", b: "10" }))).toEqual(["node-1 knew a of revision 2, and now follows it from 1"]);
  });
});

describe("agentsHearOfDatastore()", () => {
  test.each([
    ["heard a while ago", { knownAt: 80_000, quietSince: 0 }, []],
    ["a fault ended a while ago", { knownAt: 0, quietSince: 80_000 }, []],
    ["neither", { knownAt: 50_000, quietSince: 60_000 }, ["node-1 last heard of it 150 s ago"]],
  ])("%s", (_, { knownAt, quietSince }, expected) => {
    const host = { knownAt, quietTimes: [{ since: quietSince, until: 200_000 }] } as never;
    const node = { name: "node-1", isRegistered: true, attachments: new Map(), host };

    expect(agentsHearOfDatastore().check({ ...EMPTY, now: 200_000, nodes: new Map([["node-1", node]]) })).toEqual(
      expected as string[],
    );
  });
});

describe("watchesAreBegunWithPauses()", () => {
  test("more than some in ten seconds are a violation", () => {
    const { check } = watchesAreBegunWithPauses();
    const worldAt = (now: number, watches: number): World => ({
      ...EMPTY,
      now,
      begunWatches: new Map([
        ["watch by agent at node-1 /api/v1/pods", watches],
        ["read by agent at node-1 /api/v1/pods", 10 * watches],
      ]),
    });

    expect([check(worldAt(0, 0)), check(worldAt(9_000, 900)), check(worldAt(40_000, 200))]).toEqual([[], [], []]);
    expect(check(worldAt(50_000, 300))).toEqual(["100 times in 10 s: watch by agent at node-1 /api/v1/pods"]);
  });
});
