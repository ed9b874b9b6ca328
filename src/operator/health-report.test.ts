import { describe, expect, test } from "bun:test";
import { livenessOf } from "./health-report.ts";

const MINUTE = 60_000;
const STATE = { isListed: true, passes: 3, failures: 0, lastPassAt: 0, lastFailure: "" };
const report = (now: number, passStartedAt: number | undefined, electedAt = now) => ({
  state: { ...STATE, passStartedAt },
  isLeading: true,
  electedAt,
  now,
});

describe("livenessOf()", () => {
  test("fails if the lease is not asked for, or if a pass does not end", () => {
    expect(livenessOf(report(20 * MINUTE, undefined)).status).toBe(200);
    expect(livenessOf(report(20 * MINUTE, 16 * MINUTE)).status).toBe(200);
    expect(livenessOf(report(20 * MINUTE, undefined, 18 * MINUTE)).status).toBe(503);
    expect(livenessOf(report(20 * MINUTE, 14 * MINUTE))).toEqual({
      status: 503,
      text: "a comparison has been running for 360 s",
    });
  });
});
