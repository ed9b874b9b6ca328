/**
 * Removes everything an owner has, in both families or in one. Needs only the owner's
 * name: no config, no result, no file. Succeeds if there is nothing to remove.
 */
import { PluginError } from "../../errors.ts";
import type { Family } from "../../ip/address.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { readGeneration, tryCommit } from "../../linux/nftables/commit.ts";
import type { NftChange } from "../../linux/nftables/ruleset.ts";
import { releaseChanges, uncountChanges } from "./changes.ts";
import { type Claim, isForAnyAddress } from "./claim.ts";
import type { OwnedElements } from "./owned-elements.ts";
import type { PortRecord } from "./port-records.ts";
import { findRecords } from "./read-records.ts";
import { forgetSingleAddresses, throwUnexpected } from "./refusals.ts";

const ATTEMPTS = 50;

/** Returns the ports that were released. */
export async function releasePorts(
  socket: NetlinkSocket,
  id: Uint8Array,
  families: readonly Family[] = [4, 6],
): Promise<readonly Claim[]> {
  const isReleased = ({ family }: OwnedElements) => families.includes(family);
  const released: Claim[] = [];
  const changes: NftChange[] = [];
  for (const family of families) {
    const { records, hasGap } = findRecords(socket, family, id);
    if (hasGap) return releaseExactly(socket, id, isReleased);
    if (records.length === 0) continue;
    changes.push(...releaseChanges(family, { id, name: "" }, records));
    noteClaims(records, released);
  }
  const single = released.filter((claim) => !isForAnyAddress(claim));
  if (isReleasedWhole(socket, changes, single)) return released;
  const refusals = tryCommit(socket, changes);
  throwUnexpected(refusals);
  if (refusals.length > 0) return releaseExactly(socket, id, isReleased);
  forgetSingleAddresses(socket, single);
  return released;
}

/** Removes the notes about single addresses in the same batch: the kernel refuses it while others use those ports too. */
function isReleasedWhole(socket: NetlinkSocket, changes: readonly NftChange[], single: readonly Claim[]): boolean {
  if (single.length === 0) return false;
  const refusals = tryCommit(socket, [...changes, ...single.flatMap(uncountChanges)]);
  throwUnexpected(refusals);
  return refusals.length === 0;
}

/** Element by element, if something is not as it was written; only families whose elements are to be released. */
export async function releaseExactly(
  socket: NetlinkSocket,
  id: Uint8Array,
  isReleased: (owned: OwnedElements) => boolean = () => true,
): Promise<readonly Claim[]> {
  const { readOwnedElements, removeChanges } = await import("./owned-elements.ts");
  for (let tries = 0; tries < ATTEMPTS; tries++) {
    const generation = readGeneration(socket);
    const kept = [4 as const, 6 as const].map((family) => readOwnedElements(socket, family, id)).filter(isReleased);
    const refusals = tryCommit(socket, kept.flatMap(removeChanges), generation);
    throwUnexpected(refusals);
    if (refusals.length > 0) continue;
    const released: Claim[] = [];
    for (const { records } of kept) noteClaims(records, released);
    forgetSingleAddresses(
      socket,
      released.filter((claim) => !isForAnyAddress(claim)),
    );
    return released;
  }
  throw new PluginError("try-again-later", "Cannot remove host ports: the ruleset keeps changing");
}

function noteClaims(records: readonly PortRecord[], claims: Claim[]): void {
  for (const record of records) if (record.kind === "port") claims.push(record.claim);
}
