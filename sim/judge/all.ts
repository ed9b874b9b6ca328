/** Every invariant, for one run: some remember what they saw. */
import { noAddressTwice, noLivingAddressFreed, soundRecords } from "./addresses.ts";
import type { Invariant } from "./invariant.ts";
import { noLeakedRecord } from "./leaks.ts";

export function allInvariants(): readonly Invariant[] {
  return [soundRecords(), noAddressTwice(), noLivingAddressFreed(), noLeakedRecord()];
}
