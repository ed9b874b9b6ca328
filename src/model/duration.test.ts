import { expect, test } from "bun:test";
import { isDuration, millisecondsOf } from "./duration.ts";

test.each([
  ["180s", 180_000],
  ["1.5m", 90_000],
  ["1h", 3_600_000],
  ["0s", 0],
  ["15m0s", 900_000],
  ["1h0m0s", 3_600_000],
  ["2h30m", 9_000_000],
  ["1m1.5s", 61_500],
])("%s is %d milliseconds", (text, milliseconds) => {
  expect([isDuration(text), millisecondsOf(text)]).toEqual([true, milliseconds]);
});

test.each(["", "5", "s", "5m5", "0s15m", "1h1h", "500ms", "-1s", "1m "])("%p is not a duration", (text) => {
  expect(isDuration(text)).toBe(false);
});
