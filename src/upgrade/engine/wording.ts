/** Lists and durations as messages and plans say them. Pure. */
import { listed as listedUpTo } from "../../counted.ts";

const SHOWN = 5;

/** `n1, n2, n3 and 4 more`. */
export function listed(names: readonly string[]): string {
  return listedUpTo(names, SHOWN);
}

/** Lines of a message. */
const MOST_LINES = 20;

/** With `and 4 more` in place of the others. */
export function shortened(lines: readonly string[]): readonly string[] {
  if (lines.length <= MOST_LINES) return lines;
  return [...lines.slice(0, MOST_LINES), `and ${lines.length - MOST_LINES} more`];
}

/** `about 40 s`, `about 3 min`, `about 28 h` */
export function durationText(seconds: number): string {
  if (seconds < 1) return "no time";
  if (seconds < 100) return `about ${Math.ceil(seconds)} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 100 ? `about ${minutes} min` : `about ${Math.ceil(minutes / 60)} h`;
}
