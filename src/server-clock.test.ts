import { expect, test } from "bun:test";
import { ServerClock } from "./server-clock.ts";

const SERVER = Date.parse("2026-01-02T03:04:05.000Z");

/** The clock after `hear(later)` for each of these milliseconds: the header of a server whose time at 0 is SERVER. */
function clockAt() {
  let elapsed = 0;
  let wall = 1e12;
  const clock = new ServerClock(
    () => elapsed,
    () => wall + elapsed,
  );
  const at = (milliseconds: number) => {
    elapsed = milliseconds;
  };
  const hear = (milliseconds: number, delay = 0, ahead = 0) => {
    at(milliseconds + delay);
    const whole = Math.floor((SERVER + milliseconds + ahead) / 1000) * 1000;
    clock.hear(new Date(whole).toUTCString());
  };
  const errorAt = (milliseconds: number) => {
    at(milliseconds);
    const now = clock.now();
    return now instanceof Date ? now.getTime() - (SERVER + milliseconds) : now;
  };
  const jump = (milliseconds: number) => {
    wall += milliseconds;
  };
  return { clock, hear, errorAt, at, jump };
}

test("the time of a server is not known before it was heard, nor from a header that says nothing", () => {
  const { clock } = clockAt();
  for (const date of [null, undefined, "", "yesterday"]) clock.hear(date);

  expect(clock.now()).toBeUndefined();
  expect(clock.isOutdated).toBe(true);
});

test("the time of a server is never too late, and better with each response", () => {
  const { hear, errorAt } = clockAt();
  hear(900);
  expect(errorAt(900)).toBe(-900);
  hear(1_050, 10);
  expect(errorAt(1_060)).toBe(-60);
  hear(1_990, 400);
  expect(errorAt(50_000)).toBe(-60);
});

test("a server whose clock was set back is believed after a minute", () => {
  const { hear, errorAt } = clockAt();
  hear(0);
  hear(1_000, 0, -3_600_000);
  expect(errorAt(1_000)).toBe(0);
  hear(61_000, 0, -3_600_000);
  expect(errorAt(61_000)).toBe(-3_600_000);
});

test("what was heard long ago is outdated", () => {
  const { clock, hear, at } = clockAt();
  hear(0);
  at(600_000);
  expect(clock.isOutdated).toBe(false);
  at(600_001);
  expect(clock.isOutdated).toBe(true);
});

test.each([
  ["the machine was suspended", 900_000],
  ["the clock of the machine was set back", -900_000],
])("the time is lost once %s, until the server is heard again", (_, milliseconds) => {
  const { clock, hear, errorAt, jump } = clockAt();
  hear(0);
  jump(900);
  expect(errorAt(5_000)).toBe(0);
  jump(milliseconds);
  expect(errorAt(6_000)).toBe("lost");
  expect(clock.isOutdated).toBe(true);
  hear(7_000, 0, -3_000);
  expect(errorAt(7_000)).toBe(-3_000);
  expect(clock.isOutdated).toBe(false);
});
