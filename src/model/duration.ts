/** Durations as configuration resources have them: "180s", "1.5m", "1h". */
import * as v from "valibot";

const DURATION = /^\d{1,6}(\.\d+)?(s|m|h)$/;
const MILLISECONDS = { s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** `example`: what a duration of the field looks like. */
export function durationField(example: string) {
  return v.pipe(v.string(), v.regex(DURATION, `is not a duration; use for example "${example}", or "0s" for never`));
}

export function isDuration(text: string): boolean {
  return DURATION.test(text);
}

export function millisecondsOf(duration: string): number {
  const unit = duration.at(-1);
  return Number.parseFloat(duration) * (unit === "m" || unit === "h" ? MILLISECONDS[unit] : MILLISECONDS.s);
}
