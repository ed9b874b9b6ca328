import { describe, expect, test } from "bun:test";
import { ProcessKilled, SimulatedProcess } from "./process.ts";
import { Random } from "./random.ts";
import { Scheduler } from "./scheduler.ts";

describe("Scheduler", () => {
  test("executes events by their time, and those of one moment in the order of the seed", async () => {
    const run = async (seed: number) => {
      const scheduler = new Scheduler(new Random(seed));
      const order: string[] = [];
      for (const name of ["a", "b", "c", "d", "e", "f"]) scheduler.after(5, () => order.push(name));
      scheduler.after(9, () => order.push("late"));
      scheduler.after(1, () => order.push("early"));
      await scheduler.runUntil(100);
      return order;
    };
    const [first, again, other] = [await run(1), await run(1), await run(2)];

    expect(first).toEqual(again);
    expect(first).not.toEqual(other);
    expect([first.at(0), first.at(-1)]).toEqual(["early", "late"]);
  });

  test("an hour of waiting passes at once, and ends early with its signal", async () => {
    const scheduler = new Scheduler(new Random(1));
    const stop = new AbortController();
    const ended: number[] = [];
    for (const signal of [undefined, stop.signal]) {
      void scheduler.wait(3_600_000, signal).then(() => ended.push(scheduler.now));
    }
    scheduler.after(60_000, () => stop.abort());
    await scheduler.runUntil(7_200_000);

    expect(ended).toEqual([60_000, 3_600_000]);
    expect(scheduler.now).toBe(7_200_000);
    expect(await scheduler.step()).toBe(false);
  });

  test("keeps thousands of events in order", async () => {
    const random = new Random(7);
    const scheduler = new Scheduler(random);
    const times: number[] = [];
    for (let count = 0; count < 3_000; count++) {
      const cancel = scheduler.after(random.below(1_000), () => times.push(scheduler.now));
      if (random.chance(0.3)) cancel();
    }
    await scheduler.runUntil(1_000);

    expect(times.length).toBeGreaterThan(1_500);
    expect(times).toEqual(times.toSorted((left, right) => left - right));
  });
});

describe("SimulatedProcess", () => {
  test("a killed process has no effects any more, and nothing it waits for happens", async () => {
    const scheduler = new Scheduler(new Random(1));
    const died: string[] = [];
    const victim = new SimulatedProcess("victim", scheduler, new Random(2));
    victim.onKill(() => died.push("victim"));
    const done: string[] = [];
    const work = async () => {
      for (const name of ["first", "second", "third", "fourth"]) {
        await victim.wait(10);
        victim.effect(() => done.push(name));
      }
    };
    const outcome = work().catch((failure: unknown) => done.push(failure instanceof ProcessKilled ? "dead" : "failed"));
    victim.killAfter(2);
    await scheduler.runUntil(1_000);
    await outcome;

    expect(done).toEqual(["first", "second", "dead"]);
    expect(died).toEqual(["victim"]);
    expect(victim.isAlive).toBe(false);
  });

  test("ends when it is asked to", async () => {
    const scheduler = new Scheduler(new Random(1));
    const process = new SimulatedProcess("polite", scheduler, new Random(2));
    let endedAt = -1;
    void process.wait(3_600_000, process.signal).then(() => {
      endedAt = process.elapsed();
    });
    scheduler.after(500, () => process.end());
    await scheduler.runUntil(1_000);

    expect([endedAt, process.now().toISOString()]).toEqual([500, "2026-01-01T00:00:01.000Z"]);
  });

  test("a frozen process hears nothing until it wakes up, and then everything", async () => {
    const scheduler = new Scheduler(new Random(1));
    const process = new SimulatedProcess("frozen", scheduler, new Random(2));
    const heard: string[] = [];
    void process.wait(10).then(() => heard.push(`waited until ${scheduler.now}`));
    void process.wait(50, process.signal).then(() => heard.push(`ended at ${scheduler.now}`));
    scheduler.after(5, () => process.freeze(100));
    scheduler.after(20, () => process.end());
    await scheduler.runUntil(60);
    expect([heard, process.isFrozen]).toEqual([[], true]);
    await scheduler.runUntil(200);

    expect(heard.toSorted()).toEqual(["ended at 105", "waited until 105"]);
  });
});
