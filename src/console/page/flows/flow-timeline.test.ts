import { describe, expect, test } from "bun:test";
import { timelineOf } from "./flow-timeline.ts";
import { sampleFlow } from "./sample-flow.ts";

describe("timelineOf()", () => {
  test("counts the flows of each bucket, the denied ones too, and buckets without any", () => {
    const timeline = timelineOf([
      sampleFlow({ start: 10_000 }),
      sampleFlow({ start: 10_900, verdict: "allowed" }),
      sampleFlow({ start: 12_000, verdict: "allowed" }),
    ]);

    expect(timeline).toEqual({ at: [10, 11, 12], all: [2, 0, 1], denied: [1, 0, 0], bucketSeconds: 1 });
  });

  test("has at most about a hundred buckets, of a length that people count in", () => {
    const timeline = timelineOf([sampleFlow({ start: 0 }), sampleFlow({ start: 86_400_000 * 3 })]);

    expect(timeline?.bucketSeconds).toBe(3_600);
    expect(timeline?.at.length).toBeLessThan(100);
  });

  test("does not exist without flows", () => {
    expect(timelineOf([])).toBeUndefined();
  });
});
