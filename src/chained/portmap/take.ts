/**
 * Gives an owner its ports in the kernel, all or none.
 *
 * First as if nothing were in the way: one batch, no look. Where the kernel
 * refuses, contest.ts takes over, which the usual ADD does not even load.
 */
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { tryCommit } from "../../linux/nftables/commit.ts";
import type { NftChange } from "../../linux/nftables/ruleset.ts";
import { takeChanges } from "./changes.ts";
import type { Claim } from "./claim.ts";
import type { Holding } from "./holding.ts";
import { throwUnexpected } from "./refusals.ts";
import { needsNeighbourRule } from "./table.ts";
import { hasAllRules } from "./view.ts";

/** Answers the ports that another interface of the same container keeps. */
export async function takePorts(socket: NetlinkSocket, holdings: readonly Holding[]): Promise<readonly Claim[]> {
  if (takeAtOnce(socket, holdings)) return [];
  const { contestPorts } = await import("./contest.ts");
  return contestPorts(socket, holdings);
}

function takeAtOnce(socket: NetlinkSocket, holdings: readonly Holding[]): boolean {
  const changes: NftChange[] = [];
  for (const holding of holdings) {
    if (!isPrepared(socket, holding)) return false;
    changes.push(...takeChanges(holding));
  }
  const refusals = tryCommit(socket, changes);
  throwUnexpected(refusals);
  return refusals.length === 0;
}

function isPrepared(socket: NetlinkSocket, { family, records }: Holding): boolean {
  const lengths: number[] = [];
  for (const record of records) {
    if (record.kind === "source" && needsNeighbourRule(family, record.hidden.length))
      lengths.push(record.hidden.length);
  }
  return hasAllRules(socket, family, lengths);
}
