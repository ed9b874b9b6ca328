import { describe, expect, test } from "bun:test";
import { PluginError } from "../../errors.ts";
import { ageOf, FeedStatus, worstOf } from "./status.ts";
import { readDatastoreStatus, writeDatastoreStatus } from "./status-file.ts";

const LOST = new PluginError("datastore-unavailable", "no route");

function following(): FeedStatus {
  const status = new FeedStatus(0);
  status.hear(1_000);
  status.sync(1_000);
  return status;
}

describe("FeedStatus", () => {
  test("what it knows grows old from the last thing that was heard, with a watch or without", () => {
    const status = following();
    status.hear(50_000);
    const whileOpen = ageOf(status.current, 60_000);
    status.lose(60_000, LOST);

    expect([whileOpen, ageOf(status.current, 100_000)]).toEqual([10_000, 50_000]);
    expect(status.current).toEqual({ state: "stale", since: 60_000, heardAt: 50_000, failure: LOST });
  });

  test("a watch that is open for a moment only makes nothing younger", () => {
    const status = following();
    status.lose(10_000, LOST);
    for (let now = 20_000; now <= 300_000; now += 10_000) {
      status.hear(now);
      status.sync(now);
      status.lose(now + 5, LOST);
    }

    expect(status.current).toMatchObject({ state: "stale", since: 10_000 });
    expect(ageOf(status.current, 310_000)).toBeGreaterThanOrEqual(300_000);
  });

  test("a watch that was open for a while does", () => {
    const status = following();
    status.lose(10_000, LOST);
    status.hear(20_000);
    status.sync(20_000);
    status.lose(25_000, LOST);

    expect(status.current).toMatchObject({ state: "stale", since: 25_000, heardAt: 20_000 });
  });
});

describe("worstOf()", () => {
  test("is as old as the feed that was heard the longest ago", () => {
    const [silent, busy] = [following(), following()];
    busy.hear(90_000);

    expect(ageOf(worstOf([busy.current, silent.current]), 100_000)).toBe(99_000);
  });
});

describe("writeDatastoreStatus()", () => {
  test("is read back with the time of the host", () => {
    const status = following();
    status.lose(61_000, LOST);
    const now = new Date("2026-11-17T12:00:00.400Z");

    expect(readDatastoreStatus(writeDatastoreStatus(status.current, { elapsed: 61_000, now }))).toEqual({
      state: "stale",
      knownAt: "2026-11-17T11:59:00.000Z",
      failure: "no route",
    });
    expect(readDatastoreStatus("{}")).toBeUndefined();
  });
});
