/**
 * Assigns ports to an owner in the kernel, all or none.
 *
 * The first attempt assumes that there is no conflict: one batch, no read. If the
 * kernel refuses it, resolve-conflicts.ts takes over, which an ordinary ADD does not load.
 */
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { tryCommit } from "../../linux/nftables/commit.ts";
import type { NftChange } from "../../linux/nftables/ruleset.ts";
import { assignChanges } from "./changes.ts";
import type { Claim } from "./claim.ts";
import type { RecordSet } from "./port-records.ts";
import { hasAllRules, readRuleHeads } from "./read-records.ts";
import { throwUnexpected } from "./refusals.ts";

/**
 * Returns the ports that another interface of the same container keeps. What the owner has already is replaced only if
 * that is still wanted.
 */
export async function assignPorts(
  socket: NetlinkSocket,
  recordSets: readonly RecordSet[],
  isStillWanted?: () => boolean,
): Promise<readonly Claim[]> {
  if (assignAtOnce(socket, recordSets)) return [];
  const { assignDespiteConflicts } = await import("./resolve-conflicts.ts");
  return assignDespiteConflicts(socket, recordSets, isStillWanted);
}

function assignAtOnce(socket: NetlinkSocket, recordSets: readonly RecordSet[]): boolean {
  const changes: NftChange[] = [];
  for (const recordSet of recordSets) {
    if (!hasAllRules(readRuleHeads(socket, recordSet.family), recordSet)) return false;
    changes.push(...assignChanges(recordSet));
  }
  const refusals = tryCommit(socket, changes);
  throwUnexpected(refusals);
  return refusals.length === 0;
}
