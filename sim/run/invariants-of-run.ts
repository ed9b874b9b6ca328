import { noAddressTwice, noLivingAddressFreed, soundRecords } from "../judge/addresses.ts";
import type { Invariant } from "../judge/invariant.ts";

/** For one run: invariants remember what they have seen. */
export function invariantsOfRun(): readonly Invariant[] {
  return [soundRecords(), noAddressTwice(), noLivingAddressFreed()];
}
