import type { Violation } from "../judge/invariant.ts";

/** What the product does not promise yet. */
const KNOWN: readonly RegExp[] = [/^Handle ".*" is recorded, and has no address$/];

export function isKnownGap({ what }: Violation): boolean {
  return KNOWN.some((pattern) => pattern.test(what));
}
