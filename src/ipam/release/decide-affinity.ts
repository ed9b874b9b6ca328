/**
 * Ends a host's claim on a block: an empty block goes with it, a block in use
 * stays and becomes nobody's. A claim on a block that is another's, or that
 * never came to be, goes alone.
 */
import type { Change, Decision } from "../../datastore/datastore.ts";
import type { Prefix } from "../../ip/prefix.ts";
import { hostAffinity } from "../../model/ipam-block.ts";
import * as keys from "../../model/keys.ts";
import { isEmpty } from "../block.ts";
import type { Facts } from "../facts.ts";
import { blockChange } from "../records.ts";
import { View } from "../view.ts";

export interface AffinityRequest {
  readonly node: string;
  readonly block: Prefix;
  /** Whether a block with addresses in use may lose its host. */
  readonly inUse: "keep" | "release";
}

/** `kept`: addresses are in use, and the request wanted such a block kept. */
export type AffinityOutcome = "released" | "kept" | "absent";

export function decideReleaseAffinity(request: AffinityRequest, facts: Facts): Decision<AffinityOutcome> {
  const view = new View(facts, request.node);
  const affinity = facts.entry(keys.affinityKey(request.node, request.block));
  const ending: readonly Change[] = affinity
    ? [{ kind: "delete", key: affinity.key, revision: affinity.revision }]
    : [];
  const known = view.block(request.block);
  if (known.kind !== "present" || known.block.affinity !== hostAffinity(request.node)) {
    return { kind: "commit", changes: ending, outcome: affinity ? "released" : "absent" };
  }
  if (isEmpty(known.block)) {
    const gone: Change = { kind: "delete", key: keys.blockKey(request.block), revision: known.revision };
    return { kind: "commit", changes: [gone, ...ending], outcome: "released" };
  }
  if (request.inUse === "keep") return { kind: "commit", changes: [], outcome: "kept" };
  const { affinity: _, ...rest } = known.block;
  const freed = { ...rest, sequenceNumber: rest.sequenceNumber + 1n };
  return { kind: "commit", changes: [blockChange(freed, known.revision), ...ending], outcome: "released" };
}
