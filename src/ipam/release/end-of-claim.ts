/**
 * Releases a claim and deletes its block, or removes the node from the block:
 *
 *   claim pendingDeletion -> block deleted, or without a node -> claim deleted
 *
 * So a claim is never confirmed without its block, wherever a crash happens. The
 * claim is always written first: a concurrent confirmation loses its race.
 */
import type { Change, OrderedChange } from "../../datastore/datastore.ts";
import type { Prefix } from "../../ip/prefix.ts";
import { affinityChange, type HostAffinity } from "../records.ts";

/** `block`: what ends the block. */
export function endOfClaim(
  { node, cidr, key, state, revision }: HostAffinity & { readonly node: string; readonly cidr: Prefix },
  block: Change,
): readonly OrderedChange[] {
  // Writing the current state again might change nothing, not even the revision. Both states are unconfirmed.
  const unconfirmed = state === "pendingDeletion" ? "pending" : "pendingDeletion";
  return [affinityChange({ node, cidr }, unconfirmed, revision), block, { kind: "rewrite", key, value: undefined }];
}
