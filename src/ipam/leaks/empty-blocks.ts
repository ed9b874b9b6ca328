/**
 * Which empty blocks are surplus: all but one of each pool and node, if they were empty at every look for the grace
 * period. Pure, but for what it remembers between two looks.
 */
import { formatPrefix } from "../../ip/prefix.ts";
import { affineNode, type IPAMBlock } from "../../model/ipam-block.ts";
import { isEmpty } from "../block.ts";
import type { Pool } from "../pools.ts";
import { surplusBlocks } from "./find.ts";
import { type LookTime, UnusedSince } from "./unused-since.ts";

export interface SurplusBlock {
  readonly node: string;
  readonly block: IPAMBlock;
}

export class EmptyBlocks {
  /** By CIDR and sequence number: a block that was used in between is another matter. */
  private readonly since = new UnusedSince();

  look(
    blocks: readonly IPAMBlock[],
    pools: readonly Pool[],
    time: LookTime & { readonly datastoreTime: Date },
  ): readonly SurplusBlock[] {
    const { graceMilliseconds } = time;
    const empty = graceMilliseconds === 0 ? [] : blocks.filter(isEmpty);
    const ages = this.since.look(empty.map(identityOf), time);
    const isOld = new Set(empty.filter((_, index) => (ages[index] ?? 0) >= graceMilliseconds));
    return surplusInCluster({ blocks: empty, pools }, time.datastoreTime).filter(({ block }) => isOld.has(block));
  }
}

/** However long they have been empty. */
export function surplusInCluster(
  records: { readonly blocks: readonly IPAMBlock[]; readonly pools: readonly Pool[] },
  now: Date,
): readonly SurplusBlock[] {
  const nodes = new Set(records.blocks.flatMap((block) => affineNode(block) ?? []));
  return [...nodes].flatMap((node) => surplusBlocks(records, { node, now }).map((block) => ({ node, block })));
}

function identityOf({ cidr, sequenceNumber }: IPAMBlock): string {
  return `${formatPrefix(cidr)} ${sequenceNumber}`;
}
