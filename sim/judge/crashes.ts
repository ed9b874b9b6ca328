/**
 * No program of the product ends by itself, and none fails for a reason that lies in its own code. A CHECK of a container
 * that nobody has touched, and a GC, succeed.
 */
import type { Invariant } from "./invariant.ts";

export function nobodyCrashes(): Invariant {
  return { name: "nobody crashes", when: "after each step", check: ({ crashes = [] }) => crashes };
}

export function callsSucceed(): Invariant {
  return { name: "CHECK and GC succeed", when: "after each step", check: ({ failedCalls = [] }) => failedCalls };
}

/** Thrown by the language, never by a server, a kernel or a peer. */
export function isFaultOfCode(failure: unknown): boolean {
  return failure instanceof TypeError || failure instanceof RangeError || failure instanceof ReferenceError;
}
