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
