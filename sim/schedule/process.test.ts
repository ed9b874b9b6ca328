import { expect, test } from "bun:test";
import { SimulatedProcess } from "./process.ts";
import { Random } from "./random.ts";
import { Scheduler } from "./scheduler.ts";

test("a process that dies at an effect of what arrives does not end the simulation", async () => {
  const scheduler = new Scheduler(new Random(1));
  const process = new SimulatedProcess("call 1 on node-1", scheduler, new Random(2));
  process.killAfter(1);
  const done: string[] = [];
  scheduler.after(10, () =>
    process.deliver(() => {
      process.effect(() => done.push("first"));
      process.effect(() => done.push("second"));
    }),
  );
  scheduler.after(20, () => void done.push("others go on"));
  await scheduler.runUntil(30);

  expect(process.isAlive).toBe(false);
  expect(done).toEqual(["first", "others go on"]);
});

test("what arrives and fails for another reason is nobody's death", () => {
  const process = new SimulatedProcess("call 1 on node-1", new Scheduler(new Random(1)), new Random(2));
  const arrival = () => {
    throw new TypeError("undefined is not a function");
  };

  expect(() => process.deliver(arrival)).toThrow(TypeError);
});
