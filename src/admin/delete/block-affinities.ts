/** Finds and releases nodes' affinities for blocks: both in blocks and in records of affinities, since a crash may have left one without the other. */

import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import type { Unreadable } from "../../datastore/read-each.ts";
import { type Prefix, prefixCovers } from "../../ip/prefix.ts";
import type { AffinityRequest } from "../../ipam/release/decide-affinity.ts";
import { affineNode, type IPAMBlock } from "../../model/ipam-block.ts";
import { ALL_AFFINITIES_PREFIX, affinitiesPrefix, affinityKey, blockKey, parseKey } from "../../model/keys.ts";
import { allocatorFor } from "../ipam/allocator.ts";
import { blocksWithin, findBlocks } from "../ipam/blocks.ts";
import type { Call, Clock, Terminal } from "../main/context.ts";
import { openProgress } from "../terminal/progress.ts";

export interface BlockAffinity {
  readonly node: string;
  readonly cidr: Prefix;
}

/** Affinities that can be released, and unreadable blocks, whose affinities cannot be released. */
interface BlockAffinities {
  readonly affinities: readonly BlockAffinity[];
  readonly unreadable: readonly Unreadable[];
}

export async function affinitiesWithin(store: Datastore, range: Prefix): Promise<BlockAffinities> {
  const blocks = await blocksWithin(store, range);
  const affinities = affinitiesOf(blocks.readable, await readAllEntries(store, ALL_AFFINITIES_PREFIX));
  return withoutUnreadable(
    affinities.filter(({ cidr }) => prefixCovers(range, cidr)),
    blocks.unreadable,
  );
}

export async function affinitiesOfNode(store: Datastore, node: string): Promise<BlockAffinities> {
  const blocks = await findBlocks(store);
  const affinities = affinitiesOf(blocks.readable, await readAllEntries(store, affinitiesPrefix(node)));
  return withoutUnreadable(
    affinities.filter((affinity) => affinity.node === node),
    blocks.unreadable,
  );
}

/** Returns the affinities that were released; others were already gone. */
export async function releaseAffinities(
  store: Datastore,
  affinities: readonly BlockAffinity[],
  {
    context,
    ...how
  }: { readonly context: Call & Terminal & Clock } & Required<Pick<AffinityRequest, "inUse" | "resting">>,
): Promise<readonly BlockAffinity[]> {
  const allocator = allocatorFor(store, context);
  const progress = openProgress(context, "Releasing blocks", affinities.length);
  const released: BlockAffinity[] = [];
  for (const affinity of affinities) {
    const outcome = await allocator.releaseAffinity({
      node: affinity.node,
      block: affinity.cidr,
      ...how,
    });
    if (outcome === "released") released.push(affinity);
    progress.step();
  }
  progress.end();
  return released;
}

function withoutUnreadable(affinities: readonly BlockAffinity[], blocks: readonly Unreadable[]): BlockAffinities {
  const isOn = (affinity: BlockAffinity, { key }: Unreadable) => blockKey(affinity.cidr) === key;
  return {
    affinities: affinities.filter((affinity) => !blocks.some((block) => isOn(affinity, block))),
    unreadable: blocks.filter((block) => affinities.some((affinity) => isOn(affinity, block))),
  };
}

function affinitiesOf(blocks: readonly IPAMBlock[], records: readonly Entry[]): readonly BlockAffinity[] {
  const inBlocks = blocks.flatMap((block): BlockAffinity[] => {
    const node = affineNode(block);
    return node === undefined ? [] : [{ node, cidr: block.cidr }];
  });
  const inRecords = records.flatMap(({ key }): BlockAffinity[] => {
    const parts = parseKey(key);
    return parts?.kind === "affinity" ? [parts] : [];
  });
  return [
    ...new Map(
      [...inBlocks, ...inRecords].map((affinity) => [affinityKey(affinity.node, affinity.cidr), affinity]),
    ).values(),
  ];
}
