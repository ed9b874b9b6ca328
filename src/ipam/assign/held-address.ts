/**
 * What the owner holds already: a second ADD of the same attachment, after an
 * answer that got lost, must not take a second address. An address that is recorded
 * for the former name of this host is recorded for its new name.
 */

import { isSameAddress } from "../../ip/address.ts";
import { NODE_ATTRIBUTE } from "../../model/ipam-block.ts";
import { addressAt, assignOrdinal, attributesOf, ordinalsOf, releaseOrdinals } from "../block.ts";
import type { AssignRequest } from "../request.ts";
import type { KnownBlock } from "../view.ts";
import { type Choice, type Search, type TakeChoice, takeFrom } from "./choice.ts";

export function heldAddress(search: Search): Choice | undefined {
  const { view, request, family } = search;
  const unread = view.handleBlocks(request.handle, family).filter((cidr) => view.block(cidr).kind === "unknown");
  if (unread.length > 0) return { kind: "read", wanted: unread.map((cidr) => view.wantedBlock(cidr)) };

  for (const known of view.knownBlocks(family)) {
    const ordinal = ordinalsOf(known.block, request).find((each) => !isReplaced(known, each, request));
    if (ordinal !== undefined) return keepAddress(search, known, ordinal);
  }
  return undefined;
}

function isReplaced({ block }: KnownBlock, ordinal: number, { replaced = [] }: AssignRequest): boolean {
  return replaced.length > 0 && replaced.some((address) => isSameAddress(address, addressAt(block, ordinal)));
}

/** The owner's own address, recorded for this node. */
export function keepAddress(search: Search, known: KnownBlock, ordinal: number): Choice {
  const { block } = known;
  const { request } = search;
  const attributes = attributesOf(block, ordinal);
  const formerNode = attributes?.secondary[NODE_ATTRIBUTE];
  const isOtherNode = formerNode !== undefined && formerNode !== request.node;
  const isRenewed = request.renewsHeld === true && attributes?.handleId === request.handle;
  const isRecordedAgain = isOtherNode || isRenewed;
  const choice = isRecordedAgain ? recordAgain(search, known, ordinal) : undefined;
  if (choice === undefined) return { kind: "held", block, ordinal };
  return isOtherNode ? { ...choice, formerNode } : { ...choice, wasHeld: true };
}

/** As assigned now, by this request. */
export function recordAgain(search: Search, known: KnownBlock, ordinal: number): TakeChoice | undefined {
  const freed = releaseOrdinals(known.block, [ordinal], search.now, "for good");
  const again = assignOrdinal(freed, ordinal, search.attributes);
  return again && takeFrom(search, known, again);
}
