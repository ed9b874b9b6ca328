/** Every invariant, for one run: some remember what they saw. */
import { noAddressTwice, noAddressTwiceInKernels, noLivingAddressFreed, soundRecords } from "./addresses.ts";
import { statusOnlyAfterRules } from "./endpoint-status.ts";
import type { Invariant } from "./invariant.ts";
import { noLeftoverInKernel } from "./kernel-leaks.ts";
import { noLeakedRecord } from "./leaks.ts";
import { everythingComesAbout } from "./liveness.ts";
import { reachableWhereAllowed } from "./reachability.ts";

export function allInvariants(): readonly Invariant[] {
  return [
    soundRecords(),
    noAddressTwice(),
    noAddressTwiceInKernels(),
    noLivingAddressFreed(),
    statusOnlyAfterRules(),
    noLeakedRecord(),
    noLeftoverInKernel(),
    everythingComesAbout(),
    reachableWhereAllowed(),
  ];
}
