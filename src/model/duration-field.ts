/** Durations as configuration resources have them. */
import * as v from "valibot";
import { DURATION } from "./duration.ts";

/** `example`: what a duration of the field looks like. */
export function durationField(example: string) {
  return v.pipe(v.string(), v.regex(DURATION, `is not a duration; use for example "${example}", or "0s" for never`));
}
