/**
 * What the owner holds already: a second ADD of the same attachment, after an
 * answer that got lost, must not take a second address.
 */

import { ordinalsOf } from "../block.ts";
import type { Choice, Search } from "./choice.ts";

export function heldAddress(search: Search): Choice | undefined {
  const { view, request, family } = search;
  const unread = view.handleBlocks(request.handle, family).filter((cidr) => view.block(cidr).kind === "unknown");
  if (unread.length > 0) return { kind: "read", wanted: unread.map((cidr) => view.wantedBlock(cidr)) };

  for (const { block } of view.knownBlocks(family)) {
    const [ordinal] = ordinalsOf(block, request);
    if (ordinal !== undefined) return { kind: "held", block, ordinal };
  }
  return undefined;
}
