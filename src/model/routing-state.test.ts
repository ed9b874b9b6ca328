import { describe, expect, test } from "bun:test";
import {
  boundedRouting,
  isSameRouting,
  type KnownRouting,
  ROUTING_STATE_ANNOTATION,
  readRoutingState,
  writeRoutingState,
} from "./routing-state.ts";

const NOW = new Date("2026-01-02T03:04:05Z");
const DOWN = {
  ...{ address: "10.0.0.9", asNumber: 4_200_000_000, peer: "router", state: "Active" },
  ...{ since: "2026-01-02T03:00:00.000Z", lastError: "Socket: Connection refused" },
};
const BROKEN: KnownRouting = { sessions: { wanted: 4, established: 3 }, down: [DOWN], problems: [] };

function readBack(known: KnownRouting) {
  const text = writeRoutingState(boundedRouting(known), NOW);
  return text === undefined ? undefined : readRoutingState({ [ROUTING_STATE_ANNOTATION]: text });
}

describe("the state of the routing of a node", () => {
  test("is read as it was written", () => {
    expect(readBack(BROKEN)).toMatchObject({ at: NOW.toISOString(), ...BROKEN });
    expect(readBack({ down: [], problems: [] })).toBeUndefined();
  });

  test("is bounded and plain, whatever the agent knows", () => {
    const message = `${"x".repeat(3_000)}\u{1b}[2J`;
    const known: KnownRouting = {
      sessions: { wanted: 900, established: 0 },
      down: Array.from({ length: 900 }, () => ({
        ...DOWN,
        lastError: `\u{1b}[31m ${message}\n`,
        peer: "\u{202e}evil",
      })),
      problems: Array.from({ length: 900 }, (_, index) => ({ state: "failed", message: `${index} ${message}` })),
    };
    const read = readBack(known);

    if (typeof read !== "object") throw new Error(`it is ${read}`);
    expect([read.down.length, read.problems.length]).toEqual([5, 5]);
    expect(read.problems.at(-1)?.message).toStartWith("896 more problems");
    expect(JSON.stringify(read).length).toBeLessThan(8_000);
    expect(read.down[0]?.peer).toBe(" evil");
  });

  test.each([
    ["no JSON", "{"],
    ["another type", "[]"],
    ["null", "null"],
    ["a number that is none", `{"at":"${NOW.toISOString()}","sessions":{"wanted":"4"},"down":[],"problems":[]}`],
    ["more established than wanted", writeRoutingState({ ...BROKEN, sessions: { wanted: 1, established: 2 } }, NOW)],
    ["a time that is none", writeRoutingState(BROKEN, NOW)?.replace(NOW.toISOString(), "yesterday")],
    ["what moves the cursor", writeRoutingState({ ...BROKEN, down: [{ ...DOWN, state: "\u{1b}[2J" }] }, NOW)],
    ["too many sessions", writeRoutingState({ ...BROKEN, down: Array(6).fill(DOWN) }, NOW)],
    ["too much text", writeRoutingState({ ...BROKEN, down: [{ ...DOWN, peer: "x".repeat(401) }] }, NOW)],
    ["a very long annotation", `${" ".repeat(20_000)}${writeRoutingState(BROKEN, NOW)}`],
  ])("is unreadable with %s", (_, text = "") => {
    expect(readRoutingState({ [ROUTING_STATE_ANNOTATION]: text })).toBe("unreadable");
  });

  test("is the same while a session is tried again, and another with another error", () => {
    const tried = { ...DOWN, state: "Connect", since: NOW.toISOString() };

    expect(isSameRouting(BROKEN, { ...BROKEN, down: [tried] })).toBe(true);
    expect(isSameRouting(BROKEN, { ...BROKEN, down: [{ ...DOWN, lastError: "Hold timer expired" }] })).toBe(false);
    expect(isSameRouting(BROKEN, { ...BROKEN, sessions: { wanted: 4, established: 4 }, down: [] })).toBe(false);
  });
});
