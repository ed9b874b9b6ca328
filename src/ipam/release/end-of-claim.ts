/**
 * The end of a claim together with its block, or with the block's being ours:
 *
 *   claim pendingDeletion -> block deleted, or nobody's -> claim deleted
 *
 * So a claim is never confirmed without its block, wherever a crash comes. The
 * claim is always written first: whoever is about to confirm it loses its race.
 */
import type { Change, OrderedChange } from "../../datastore/datastore.ts";
import type { Prefix } from "../../ip/prefix.ts";
import { affinityChange, type HostAffinity } from "../records.ts";

/** `block`: what ends the block. */
export function endOfClaim(
  { node, cidr, key, state, revision }: HostAffinity & { readonly node: string; readonly cidr: Prefix },
  block: Change,
): readonly OrderedChange[] {
  // To write the state that is there already might change nothing, not even the revision. Either is unconfirmed.
  const unconfirmed = state === "pendingDeletion" ? "pending" : "pendingDeletion";
  return [affinityChange({ node, cidr }, unconfirmed, revision), block, { kind: "rewrite", key, value: undefined }];
}
