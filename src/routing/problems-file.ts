/** Why routes are missing, and which records do not count: the node agent writes it for `node status`. */
import * as v from "valibot";

/** In the run directory. */
export const ROUTING_PROBLEMS_FILE = "routing-problems.json";

export function writeRoutingProblems(problems: readonly string[]): string {
  return `${JSON.stringify(problems)}\n`;
}

/** None if the text cannot be read: another version may have written it. */
export function readRoutingProblems(text: string): readonly string[] {
  try {
    return v.parse(v.array(v.string()), JSON.parse(text));
  } catch {
    return [];
  }
}
