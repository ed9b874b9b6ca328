/**
 * What the owner holds already: a second ADD of the same attachment, after an
 * answer that got lost, must not take a second address. An address that is recorded
 * for the former name of this host is recorded for its new name.
 */

import { assignOrdinal, attributesOf, NODE_ATTRIBUTE, ordinalsOf, releaseOrdinals } from "../block.ts";
import type { KnownBlock } from "../view.ts";
import { type Choice, type Search, takeFrom } from "./choice.ts";

export function heldAddress(search: Search): Choice | undefined {
  const { view, request, family } = search;
  const unread = view.handleBlocks(request.handle, family).filter((cidr) => view.block(cidr).kind === "unknown");
  if (unread.length > 0) return { kind: "read", wanted: unread.map((cidr) => view.wantedBlock(cidr)) };

  for (const known of view.knownBlocks(family)) {
    const [ordinal] = ordinalsOf(known.block, request);
    if (ordinal !== undefined) return keepAddress(search, known, ordinal);
  }
  return undefined;
}

/** The owner's own address, recorded for this node. */
export function keepAddress(search: Search, known: KnownBlock, ordinal: number): Choice {
  const { block } = known;
  const formerNode = attributesOf(block, ordinal)?.secondary[NODE_ATTRIBUTE];
  if (formerNode === undefined || formerNode === search.request.node) return { kind: "held", block, ordinal };
  const taken = assignOrdinal(releaseOrdinals(block, [ordinal]), ordinal, search.attributes);
  return taken === undefined ? { kind: "held", block, ordinal } : { ...takeFrom(search, known, taken), formerNode };
}
