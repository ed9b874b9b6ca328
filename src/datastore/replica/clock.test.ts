import { describe, expect, setSystemTime, test } from "bun:test";
import { Backoff, SYSTEM_CLOCK, spreadOver } from "./clock.ts";

const LIMITS = { firstPauseMilliseconds: 100, longestPauseMilliseconds: 1_000 };

describe("Backoff", () => {
  test("doubles up to the longest pause", () => {
    const backoff = new Backoff(LIMITS, () => 1);

    expect(Array.from({ length: 6 }, () => backoff.next(0))).toEqual([100, 200, 400, 800, 1_000, 1_000]);
  });

  test("chooses each pause from its upper half, so that it is never near zero", () => {
    const backoff = new Backoff(LIMITS, () => 0);

    expect([backoff.next(0), backoff.next(0)]).toEqual([50, 100]);
  });

  test("is reset only after the longest pause without a failure", () => {
    const backoff = new Backoff(LIMITS, () => 1);
    const pauses = [0, 0, 999, 1_000, 0].map((wellFor) => backoff.next(wellFor));

    expect(pauses).toEqual([100, 200, 400, 100, 200]);
  });
});

describe("SYSTEM_CLOCK", () => {
  test("does not follow the clock of the host, which may be set back", () => {
    const before = SYSTEM_CLOCK.now();
    setSystemTime(new Date("2001-01-01"));
    const passed = SYSTEM_CLOCK.now() - before;
    setSystemTime();

    expect(passed).toBeGreaterThanOrEqual(0);
  });

  test("waits longer than the runtime's timers can", async () => {
    const stop = new AbortController();
    let isOver = false;
    const waiting = SYSTEM_CLOCK.wait(2 ** 31, stop.signal).then(() => {
      isOver = true;
    });
    await Bun.sleep(20);
    expect(isOver).toBe(false);
    stop.abort();
    await waiting;
  });

  test("ends a wait when the signal fires, also if it fired before", async () => {
    const stop = new AbortController();
    const waiting = SYSTEM_CLOCK.wait(60_000, stop.signal);
    stop.abort();
    await waiting;
    await SYSTEM_CLOCK.wait(60_000, stop.signal);

    expect(stop.signal.aborted).toBe(true);
  });
});

describe("spreadOver()", () => {
  test.each([
    [0, 0, 0],
    [3, 60, 3],
    [500, 10_000, 500],
    [5_000, 60_000, 3_000],
  ])("%p replicas: lists over %p ms, watches over %p ms", (peers, lists, watches) => {
    expect([spreadOver(peers, "lists"), spreadOver(peers, "watches")]).toEqual([lists, watches]);
  });
});
