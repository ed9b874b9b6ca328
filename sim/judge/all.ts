/** Every invariant, for one run: some remember what they saw. */
import { noAddressTwice, noAddressTwiceInKernels, noLivingAddressFreed, soundRecords } from "./addresses.ts";
import { noCopyLost } from "./copies.ts";
import { callsSucceed, nobodyCrashes } from "./crashes.ts";
import { nothingDeniedIsDelivered } from "./denied.ts";
import { startsWithRules, statusOnlyAfterRules } from "./endpoint-status.ts";
import { agentsHearOfDatastore, noAgentGoesBack, watchesAreBegunWithPauses } from "./followed-revisions.ts";
import { formerConnectionsAreForgotten } from "./former-connections.ts";
import type { Invariant } from "./invariant.ts";
import { ipamReader } from "./ipam-state.ts";
import { keptAddressesStay } from "./kept-pods.ts";
import { noLeftoverInKernel } from "./kernel-leaks.ts";
import { oneLeader } from "./leaders.ts";
import { noLeakedRecord } from "./leaks.ts";
import { everythingComesAbout } from "./liveness.ts";
import { natFollowsPools, servedCallsLeaveNat } from "./nat.ts";
import { noAddressLeadsToAnotherPod, noNodeAddressLeadsToPod } from "./node-addresses.ts";
import { kernelRules, trackedRules } from "./packets/kernel-rules.ts";
import { policyReader } from "./policy-state.ts";
import { reachableWhereAllowed } from "./reachability.ts";
import { releasedAddressesRest } from "./rest.ts";
import { noTunnelAddressFreed } from "./tunnels.ts";

export function allInvariants(): readonly Invariant[] {
  // Each change is decoded once for all of them.
  const read = ipamReader();
  const readPolicy = policyReader();
  return [
    soundRecords(read),
    nobodyCrashes(),
    callsSucceed(),
    oneLeader(),
    noAddressTwice(),
    noAddressTwiceInKernels(),
    noLivingAddressFreed(read),
    noTunnelAddressFreed(read),
    keptAddressesStay(read),
    releasedAddressesRest(read),
    noCopyLost(),
    noAgentGoesBack(),
    agentsHearOfDatastore(),
    watchesAreBegunWithPauses(),
    noNodeAddressLeadsToPod(),
    noAddressLeadsToAnotherPod(read),
    statusOnlyAfterRules(),
    startsWithRules(),
    servedCallsLeaveNat(),
    natFollowsPools(),
    noLeakedRecord(read),
    noLeftoverInKernel(read),
    everythingComesAbout(read),
    nothingDeniedIsDelivered(kernelRules, readPolicy),
    formerConnectionsAreForgotten(trackedRules, readPolicy),
    reachableWhereAllowed(kernelRules, readPolicy),
  ];
}
