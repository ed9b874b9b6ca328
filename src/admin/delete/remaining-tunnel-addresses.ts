/**
 * The addresses of tunnels in a pool that was just deleted. The agents of their nodes notice it: they take others, record
 * them, and only then release these. So no address that the record of a node names is ever free.
 *
 *   in another pool by now ──> left as it is: the pool was created again, or overlapped
 *   its node exists        ──> left to the agent, and waited for a while
 *   its node is gone       ──> released here
 *
 * Whether the record names the address does not matter: an agent that has just taken it from the pool is about to write that.
 */

import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { MOST_IN_ONE_REQUEST } from "../../datastore/preconditions.ts";
import { readEach } from "../../datastore/read-each.ts";
import { type Prefix, prefixesOverlap } from "../../ip/prefix.ts";
import { isEmpty } from "../../ipam/block.ts";
import { readKeys } from "../../ipam/leaks/read-keys.ts";
import type { Pool } from "../../ipam/pools.ts";
import { decodeBlock } from "../../ipam/records.ts";
import { guarded } from "../../ipam/request.ts";
import { affineNode, type IPAMBlock, NODE_ATTRIBUTE } from "../../model/ipam-block.ts";
import { blockKey, blocksPrefix } from "../../model/keys.ts";
import { NODE } from "../../model/kinds.ts";
import { tunnelTitle } from "../../model/tunnel-address.ts";
import { allocatorFor } from "../ipam/allocator.ts";
import { type Allocation, allocationsOf, blocksWithin } from "../ipam/blocks.ts";
import { findPools } from "../ipam/pools.ts";
import type { Call, Clock, Terminal } from "../main/context.ts";
import { type BlockAffinity, releaseAffinities } from "./block-affinities.ts";

const LONGEST_WAIT_MILLISECONDS = 5_000;
const PAUSE_MILLISECONDS = 500;

export function isOfTunnel({ secondary }: Allocation): boolean {
  return tunnelTitle(secondary) !== undefined;
}

/** With their blocks, if these are empty then. What nodes that exist have in the end stays. */
export async function releaseTunnelAddresses(
  store: Datastore,
  range: Prefix,
  context: Call & Terminal & Clock,
): Promise<void> {
  const { now } = context.clock;
  const deadline = now() + LONGEST_WAIT_MILLISECONDS;
  const { readable } = await blocksWithin(store, range);
  const found = readable.filter((block) => allocationsOf(block).some(isOfTunnel));
  if (found.length === 0) return;
  const readAgain = (cidrs: readonly Prefix[]) => readBlocks(store, range, cidrs);
  for (let blocks = found; ; ) {
    const left = await releaseThoseOfGoneNodes(store, blocks, context);
    if (left.length === 0 || now() >= deadline) break;
    await context.wait(PAUSE_MILLISECONDS);
    blocks = await readAgain(left.map(({ block }) => block));
  }
  const empty = (await readAgain(found.map(({ cidr }) => cidr))).filter(isEmpty);
  const affinities = (await outsidePools(store, empty)).flatMap((block): BlockAffinity[] => {
    const node = affineNode(block);
    return node === undefined ? [] : [{ node, cidr: block.cidr }];
  });
  await releaseAffinities(store, affinities, { context, inUse: "keep", resting: "forget unless set" });
}

export function isInPool({ cidr: block }: IPAMBlock, pools: readonly Pool[]): boolean {
  return pools.some(({ cidr }) => prefixesOverlap(cidr, block));
}

/** Returns those that are left to their agents. */
async function releaseThoseOfGoneNodes(
  store: Datastore,
  blocks: readonly IPAMBlock[],
  context: Clock,
): Promise<readonly Allocation[]> {
  const outside = await outsidePools(store, blocks);
  const tunnels = outside.flatMap(allocationsOf).filter(isOfTunnel);
  const nodes = await readNodeKeys(store, tunnels);
  const hasNode = (tunnel: Allocation) => nodes.has(nodeKeyOf(tunnel));
  await release(
    store,
    context,
    tunnels.filter((tunnel) => !hasNode(tunnel)),
  );
  return tunnels.filter(hasNode);
}

/**
 * The pools are read after the blocks: what was assigned from one that was created meanwhile is not taken for left over.
 * One that cannot be read may have any of the blocks.
 */
async function outsidePools(store: Datastore, blocks: readonly IPAMBlock[]): Promise<readonly IPAMBlock[]> {
  if (blocks.length === 0) return [];
  const { readable, unreadable } = await findPools(store);
  return unreadable.length > 0 ? [] : blocks.filter((block) => !isInPool(block, readable));
}

async function readBlocks(store: Datastore, range: Prefix, cidrs: readonly Prefix[]): Promise<IPAMBlock[]> {
  const entries = await readSome(store, blocksPrefix(range.network.family), new Set(cidrs.map(blockKey)));
  return [...readEach(entries, decodeBlock).readable];
}

/** Many are listed: a store may need a request for each key. */
async function readSome(store: Datastore, prefix: string, keys: ReadonlySet<string>): Promise<readonly Entry[]> {
  if (keys.size <= MOST_IN_ONE_REQUEST) return readKeys(store, [...keys]);
  return (await readAllEntries(store, prefix)).filter(({ key }) => keys.has(key));
}

/** Of the nodes that exist, also of those whose record cannot be read. */
async function readNodeKeys(store: Datastore, tunnels: readonly Allocation[]): Promise<ReadonlySet<string>> {
  const entries = await readSome(store, NODE.prefix(), new Set(tunnels.map(nodeKeyOf)));
  return new Set(entries.map(({ key }) => key));
}

function nodeKeyOf({ secondary }: Allocation): string {
  return NODE.key({ name: secondary[NODE_ATTRIBUTE] ?? "" });
}

async function release(store: Datastore, context: Clock, tunnels: readonly Allocation[]): Promise<void> {
  if (tunnels.length === 0) return;
  await allocatorFor(store, context).releaseAddresses(tunnels.map(guarded));
}
