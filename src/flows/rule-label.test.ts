import { expect, test } from "bun:test";
import { POINTS } from "../policy/point.ts";
import { labelOf, MOST_RULE_NUMBERS, readLabel } from "./rule-label.ts";

const NUMBERS = [1, 2, 3, 4095, 1_000_000, MOST_RULE_NUMBERS];

function merged(...labels: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(16).map((_, index) => labels.reduce((byte, label) => byte | (label[index] ?? 0), 0));
}

test("each point has its own field, and bits of others do not matter", () => {
  const others = Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  const label = merged(others, ...POINTS.map((point, index) => labelOf(point, NUMBERS[index] ?? 0)));

  expect(POINTS.map((point) => readLabel(label, point))).toEqual(
    POINTS.map((_, index) => ({ kind: "rule", number: NUMBERS[index] ?? 0 })),
  );
  expect(readLabel(others, "host in")).toEqual({ kind: "none" });
});

test("every number is read as it was written; the first bits stay those of others", () => {
  for (const number of NUMBERS) {
    const label = labelOf("workload ingress", number);
    expect(readLabel(label, "workload ingress")).toEqual({ kind: "rule", number });
    expect(label.subarray(0, 4).every((byte) => byte === 0)).toBe(true);
  }
});

test("two rules in one field are never taken for a third one", () => {
  for (const first of NUMBERS)
    for (const second of NUMBERS.filter((number) => number !== first))
      expect(readLabel(merged(labelOf("host out", first), labelOf("host out", second)), "host out")).toEqual({
        kind: "several",
      });
});

test("refuses what is not a number of a rule", () => {
  for (const number of [0, -1, 1.5, MOST_RULE_NUMBERS + 1])
    expect(() => labelOf("host in", number)).toThrow(RangeError);
});
