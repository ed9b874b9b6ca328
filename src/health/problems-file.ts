/** What the node agent cannot do as resources say, in words: it writes these files for `node status`. */
import * as v from "valibot";

/** In the run directory: why routes are missing, and which records do not count. */
export const ROUTING_PROBLEMS_FILE = "routing-problems.json";
/** In the run directory: policies that deny because they cannot be carried out, and resources that cannot be read. */
export const POLICY_PROBLEMS_FILE = "policy-problems.json";

/** Users could make up any number of them. */
const MOST_SHOWN = 100;

export function writeProblems(problems: readonly string[]): string {
  const left = problems.length - MOST_SHOWN;
  const shown =
    left > 0 ? [...problems.slice(0, MOST_SHOWN), `${left} more, which are in the log of the agent`] : problems;
  return `${JSON.stringify(shown)}\n`;
}

/** None if the text cannot be read: another version may have written it. */
export function readProblems(text: string): readonly string[] {
  try {
    return v.parse(v.array(v.string()), JSON.parse(text));
  } catch {
    return [];
  }
}
