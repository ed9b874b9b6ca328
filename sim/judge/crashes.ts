/** No program of the product ends by itself, and none fails for a reason that lies in its own code. */
import type { Invariant } from "./invariant.ts";

export function nobodyCrashes(): Invariant {
  return { name: "nobody crashes", when: "after each step", check: ({ crashes = [] }) => crashes };
}

/** Thrown by the language, never by a server, a kernel or a peer. */
export function isFaultOfCode(failure: unknown): boolean {
  return failure instanceof TypeError || failure instanceof RangeError || failure instanceof ReferenceError;
}
