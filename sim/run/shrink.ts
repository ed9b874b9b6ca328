/**
 * Makes a script that fails as small as it can: leaves out parts of its operations, large ones first, as long as the same
 * invariant is violated. Bounded by the number of attempts.
 */
import type { Operation, Script } from "../script/operation.ts";

/** Whether a script still fails in the same way. */
export type Fails = (script: Script) => Promise<boolean>;

export async function shrinkScript(script: Script, fails: Fails, attempts = 150): Promise<Script> {
  let left = attempts;
  let best = script;
  const tryWith = async (operations: readonly Operation[]): Promise<boolean> => {
    if (left <= 0) return false;
    left -= 1;
    const candidate = { ...best, operations };
    if (!(await fails(candidate))) return false;
    best = candidate;
    return true;
  };
  let size = Math.ceil(best.operations.length / 2);
  while (size >= 1 && left > 0) {
    let hasShrunk = false;
    for (let start = 0; start < best.operations.length && left > 0; ) {
      const { operations } = best;
      const rest = [...operations.slice(0, start), ...operations.slice(start + size)];
      if (await tryWith(rest)) hasShrunk = true;
      else start += size;
    }
    if (size > 1) size = Math.ceil(size / 2);
    else if (!hasShrunk) break;
  }
  return best;
}
