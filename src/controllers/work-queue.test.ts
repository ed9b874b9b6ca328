import { describe, expect, test } from "bun:test";
import { WorkQueue } from "./work-queue.ts";

/** A clock that jumps to the end of each wait. */
function queueWithClock() {
  let now = 0;
  const waits: number[] = [];
  const queue = new WorkQueue({
    elapsed: () => now,
    wait: async (milliseconds) => {
      waits.push(milliseconds);
      now += milliseconds;
    },
  });
  return { queue, waits, pass: (milliseconds: number) => (now += milliseconds) };
}

const never = new AbortController().signal;

describe("the queue of a controller", () => {
  test("has a key once, however often it is added", async () => {
    const { queue } = queueWithClock();
    for (const key of ["a", "b", "a", "a"]) queue.add(key);

    expect(queue.depth).toBe(2);
    expect([await queue.take(never), await queue.take(never)]).toEqual(["a", "b"]);
    expect(queue.depth).toBe(0);
  });

  test("accepts a key again while it is worked on", async () => {
    const { queue } = queueWithClock();
    queue.add("a");
    await queue.take(never);
    queue.add("a");

    expect(await queue.take(never)).toBe("a");
  });

  test("waits twice as long after each failure, up to a minute, and from the beginning after a success", () => {
    const { queue } = queueWithClock();
    const pauses = Array.from({ length: 13 }, () => queue.failed("a"));

    expect(pauses.slice(0, 4)).toEqual([50, 100, 200, 400]);
    expect(pauses.at(-1)).toBe(60_000);
    queue.succeeded("a");
    expect(queue.failed("a")).toBe(50);
  });

  test("does not shorten the pause of a key that is added again", async () => {
    const { queue, waits } = queueWithClock();
    queue.failed("a");
    queue.add("a");

    expect(await queue.take(never)).toBe("a");
    expect(waits).toEqual([50]);
  });

  test("works on other keys while one waits", async () => {
    const { queue, waits } = queueWithClock();
    queue.failed("a");
    queue.add("b");

    expect(await queue.take(never)).toBe("b");
    expect(waits).toEqual([]);
    expect(queue.failing).toBe(1);
  });

  test("returns nothing once it is told to stop", async () => {
    const { queue } = queueWithClock();
    queue.add("a");

    expect(await queue.take(AbortSignal.abort())).toBeUndefined();
  });
});
