import { describe, expect, test } from "bun:test";
import { Random } from "../schedule/random.ts";
import { Scheduler } from "../schedule/scheduler.ts";
import { ActiveFaults } from "./active-faults.ts";
import { Coverage } from "./coverage.ts";

function site() {
  const scheduler = new Scheduler(new Random(1));
  const faults = new ActiveFaults(scheduler, new Coverage());
  const ended: string[] = [];
  const cut = (place: string, milliseconds: number) => {
    const end = () => ended.push(`${place} at ${scheduler.now}`);
    faults.begin({ kind: "cut", place, milliseconds, end, isFelt: true });
  };
  return { scheduler, faults, ended, cut };
}

describe("ActiveFaults", () => {
  test("of two that overlap at one place, the last to end ends both", async () => {
    const { scheduler, ended, cut } = site();
    cut("node-1", 50);
    cut("node-1", 20);
    cut("node-2", 30);
    await scheduler.runUntil(100);

    expect(ended).toEqual(["node-2 at 30", "node-1 at 50"]);
  });

  test("all end at once if they are healed, and not again later", async () => {
    const { scheduler, faults, ended, cut } = site();
    cut("node-1", 50);
    cut("node-1", 20);
    faults.healAll();
    await scheduler.runUntil(100);

    expect(ended).toEqual(["node-1 at 0"]);
  });

  test("know when a place was quiet: while nothing touched it, or everybody", async () => {
    const { scheduler, faults, cut } = site();
    await scheduler.runUntil(10);
    cut("node-1", 50);
    cut("node-2", 500);
    await scheduler.runUntil(30);
    faults.begin({ kind: "restart API", milliseconds: 60, isFelt: true });
    await scheduler.runUntil(100);

    const [before, disturbed] = [{ since: Number.NEGATIVE_INFINITY, until: 10 }, faults.quietTimes("node-2")];
    expect(faults.quietTimes("node-1")).toEqual([before, { since: 90, until: 100 }]);
    expect(disturbed).toEqual([before]);
  });
});
