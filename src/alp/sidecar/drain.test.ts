import { describe, expect, test } from "bun:test";
import { proxyGone } from "./drain.ts";

/** How long it goes on, with these numbers of connections by time. */
async function drained(connectionsAt: (milliseconds: number) => number): Promise<number> {
  let now = 0;
  await proxyGone({
    connections: () => connectionsAt(now),
    wait: async (milliseconds) => {
      now += milliseconds;
    },
  });
  return now;
}

describe("proxyGone()", () => {
  test.each([
    ["until the proxy disconnects", (now: number) => (now < 3_000 ? 2 : 0), 3_000],
    ["for a limited time, although the proxy stays", () => 1, 25_000],
    ["while a proxy without a connection may still connect", () => 0, 6_000],
    ["until a proxy that connects late disconnects", (now: number) => (now >= 5_000 && now < 7_000 ? 1 : 0), 7_000],
  ])("waits %s", async (_, connectionsAt, expected) => {
    expect(await drained(connectionsAt)).toBe(expected);
  });
});
