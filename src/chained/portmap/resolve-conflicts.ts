/**
 * Assigns ports to an owner in spite of a conflict: no table yet, earlier records
 * of the same owner, another owner. Reads everything, plans, and commits on the
 * condition that nothing has changed since.
 */
import { PluginError } from "../../errors.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { readGeneration, tryCommit } from "../../linux/nftables/commit.ts";
import type { Claim } from "./claim.ts";
import { planAssignment } from "./conflict-plan.ts";
import { readConflicts } from "./conflicts.ts";
import type { RecordSet } from "./port-records.ts";
import { forgetSingleAddresses, throwUnexpected } from "./refusals.ts";

const ATTEMPTS = 50;

/** Returns the ports that another interface of the same container keeps. Writes nothing that is no longer wanted. */
export function assignDespiteConflicts(
  socket: NetlinkSocket,
  recordSets: readonly RecordSet[],
  isStillWanted: () => boolean = () => true,
): readonly Claim[] {
  for (let tries = 0; tries < ATTEMPTS; tries++) {
    const generation = readGeneration(socket);
    if (!isStillWanted()) return [];
    const plans = recordSets.map((recordSet) => planAssignment(recordSet, readConflicts(socket, recordSet)));
    const refusals = tryCommit(
      socket,
      plans.flatMap(({ changes }) => changes),
      generation,
    );
    throwUnexpected(refusals);
    if (refusals.length > 0) continue;
    for (const { released } of plans) forgetSingleAddresses(socket, released);
    return plans.flatMap(({ leftToSibling }) => leftToSibling);
  }
  throw new PluginError("try-again-later", "Cannot map host ports: the ruleset keeps changing");
}
