/** What handles count, and what blocks have: where records are written one at a time, they may differ. Pure. */
import type { IPAMBlock } from "../model/ipam-block.ts";
import { readHandle } from "../model/ipam-handle.ts";
import { attributesOf } from "./block.ts";

/** How many addresses each handle has in the blocks. */
export function heldIn(blocks: readonly IPAMBlock[]): Map<string, number> {
  const held = new Map<string, number>();
  for (const block of blocks) {
    for (const ordinal of block.allocations.keys()) {
      const handle = attributesOf(block, ordinal)?.handleId;
      if (handle !== undefined) held.set(handle, (held.get(handle) ?? 0) + 1);
    }
  }
  return held;
}

/** How many the stored handle counts. */
export function countedBy(handleId: string, { key, value }: { readonly key: string; readonly value: string }): number {
  return Object.values(readHandle(value, key, handleId).blocks).reduce((sum, count) => sum + count, 0);
}
