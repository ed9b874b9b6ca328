/**
 * Releases a host's claim on a block. An empty block is deleted with it; a block in use stays, without a node, and
 * counts as borrowed by it, and so does one whose addresses rest, until they have (block-after-release.ts). If the block belongs to
 * another node or does not exist, only the claim is deleted.
 */
import type { Change, Decision, OrderedChange } from "../../datastore/datastore.ts";
import type { Prefix } from "../../ip/prefix.ts";
import { hostAffinity, type IPAMBlock } from "../../model/ipam-block.ts";
import * as keys from "../../model/keys.ts";
import { isEmpty, touched } from "../block.ts";
import type { Facts } from "../facts.ts";
import { affinityChange, blockChange, borrowingChange, decodeAffinity, type HostAffinity } from "../records.ts";
import { hasCooling, hasResting } from "../rest.ts";
import { type KnownBlock, View } from "../view.ts";
import { endOfClaim } from "./end-of-claim.ts";

export interface AffinityRequest {
  readonly node: string;
  readonly block: Prefix;
  /** Whether a block with addresses in use, or that rest by a setting, may lose its host. */
  readonly inUse: "keep" | "release";
  /**
   * For an empty block: its addresses need not have rested, or only if they rest by a setting. An administrator says so;
   * nobody else does.
   */
  readonly resting?: "forget" | "forget unless set";
}

/** `kept`: addresses are in use, or rest by a setting, and the request excludes such blocks. */
export type AffinityOutcome = "released" | "kept" | "absent";

export function decideReleaseAffinity(request: AffinityRequest, facts: Facts, now: Date): Decision<AffinityOutcome> {
  const { node, block: cidr } = request;
  const view = new View(facts, node);
  const entry = facts.entry(keys.affinityKey(node, cidr));
  const affinity = entry && facts.decode(entry, decodeAffinity);
  const known = view.block(cidr);
  if (known.kind !== "present" || known.block.affinity !== hostAffinity(node)) {
    const changes: readonly OrderedChange[] = affinity ? [deletionOf(affinity)] : [];
    return { kind: "commit", changes, outcome: affinity ? "released" : "absent" };
  }
  const { block, revision } = known;
  const isCooling = request.resting !== "forget" && hasCooling(block, now);
  if (request.inUse === "keep" && (!isEmpty(block) || isCooling)) {
    return { kind: "commit", changes: confirmAgain(request, known, affinity), outcome: "kept" };
  }
  const mayForget = request.resting !== undefined && !isCooling;
  const isDeleted = isEmpty(block) && (mayForget || !hasResting(block, now));
  const ending: Change = isDeleted
    ? { kind: "delete", key: keys.blockKey(cidr), revision }
    : blockChange(touched(withoutHost(block)), revision);
  const borrowing = isDeleted ? [] : [borrowingChange({ node, cidr })];
  const changes = affinity ? endOfClaim({ node, ...affinity }, ending) : [ending];
  return { kind: "commit", changes: [...borrowing, ...changes], outcome: "released" };
}

/** A claim whose release was started, and that stays: confirmed after a write of the block, so that a concurrent release fails. */
function confirmAgain(
  { node, block: cidr }: AffinityRequest,
  { block, revision }: KnownBlock,
  affinity: HostAffinity | undefined,
): readonly OrderedChange[] {
  if (affinity === undefined || affinity.state === "confirmed") return [];
  return [blockChange(touched(block), revision), affinityChange({ node, cidr }, "confirmed", affinity.revision)];
}

function deletionOf({ key, revision }: HostAffinity): Change {
  return { kind: "delete", key, revision };
}

function withoutHost({ affinity: _, ...block }: IPAMBlock): IPAMBlock {
  return block;
}
