import { describe, expect, jest, test } from "bun:test";
import { after, SYSTEM_TIMERS } from "./timers.ts";

const LONGEST_MILLISECONDS = 2 ** 31 - 1;

describe("after()", () => {
  test("waits for any time, though the runtime's timers end at 25 days", () => {
    jest.useFakeTimers();
    try {
      const fired: string[] = [];
      const cancel = after(2 * LONGEST_MILLISECONDS + 5, () => fired.push("cancelled"));
      after(2 * LONGEST_MILLISECONDS + 5, () => fired.push("long"));
      after(10, () => fired.push("short"));
      jest.advanceTimersByTime(10);
      expect(fired).toEqual(["short"]);
      jest.advanceTimersByTime(LONGEST_MILLISECONDS);
      jest.advanceTimersByTime(LONGEST_MILLISECONDS - 10);
      expect(fired).toEqual(["short"]);
      cancel();
      jest.advanceTimersByTime(5);
      expect(fired).toEqual(["short", "long"]);
    } finally {
      jest.useRealTimers();
    }
  });

  test.each([2 ** 31, 2 ** 40, Number.POSITIVE_INFINITY])("does not end %d ms at once", async (milliseconds) => {
    let hasFired = false;
    const cancel = after(milliseconds, () => {
      hasFired = true;
    });
    await Bun.sleep(20);
    cancel();
    expect(hasFired).toBe(false);
  });
});

test("a timeout that is cancelled never fires", async () => {
  const cancelled = SYSTEM_TIMERS.timeout(1);
  const later = SYSTEM_TIMERS.timeout(10);
  cancelled.cancel();
  const fired = Promise.withResolvers<void>();
  later.signal.addEventListener("abort", () => fired.resolve(), { once: true });
  // The timer itself does not keep a process alive.
  const alive = setInterval(() => {}, 1_000);
  await fired.promise;
  clearInterval(alive);

  expect(cancelled.signal.aborted).toBe(false);
  expect(later.signal.reason).toMatchObject({ name: "TimeoutError" });
});
