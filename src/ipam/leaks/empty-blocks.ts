/**
 * Which empty blocks are surplus: all but one of each pool and node, if they were empty at every look for the grace
 * period. Pure, but for what it remembers between two looks.
 */
import { formatPrefix } from "../../ip/prefix.ts";
import { affineNode, type IPAMBlock } from "../../model/ipam-block.ts";
import { isEmpty } from "../block.ts";
import type { Pool } from "../pools.ts";
import { surplusBlocks } from "./find.ts";

export interface SurplusBlock {
  readonly node: string;
  readonly block: IPAMBlock;
}

export class EmptyBlocks {
  /** By CIDR and sequence number: a block that was used in between is another matter. */
  private since = new Map<string, number>();

  look(
    blocks: readonly IPAMBlock[],
    pools: readonly Pool[],
    { now, graceMilliseconds }: { readonly now: number; readonly graceMilliseconds: number },
  ): readonly SurplusBlock[] {
    const before = this.since;
    this.since = new Map();
    if (graceMilliseconds === 0) return [];
    const empty = blocks.filter(isEmpty);
    for (const block of empty) this.since.set(identityOf(block), before.get(identityOf(block)) ?? now);
    const isOld = (block: IPAMBlock) => now - (this.since.get(identityOf(block)) ?? now) >= graceMilliseconds;
    const nodes = new Set(empty.flatMap((block) => affineNode(block) ?? []));
    return [...nodes].flatMap((node) =>
      surplusBlocks({ pools, blocks: empty }, node)
        .filter(isOld)
        .map((block) => ({ node, block })),
    );
  }
}

function identityOf({ cidr, sequenceNumber }: IPAMBlock): string {
  return `${formatPrefix(cidr)} ${sequenceNumber}`;
}
