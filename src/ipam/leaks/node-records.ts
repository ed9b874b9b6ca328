/**
 * The addresses and endpoints of one node, read without looking at those of others:
 *
 *   its claims ─────> its blocks ──────────────┐
 *   its borrowings ─> blocks it borrowed from ─┴─> its allocations ──> their namespaces ──> its endpoints
 *
 * Requests and bytes depend on the node alone, not on the size of the cluster. The
 * names of a node's endpoints begin with its own name, in each namespace. Addresses
 * that other releases borrowed without a record are found through their endpoints.
 *
 * On the orchestrator's API the server reads the claims of all nodes, and the pods of
 * whole namespaces, to select those of one. Who follows the blocks of the cluster knows
 * which ones concern the node, and reads these alone (`readBlockRecords()`).
 */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { readEach } from "../../datastore/read-each.ts";
import type { Address } from "../../ip/address.ts";
import { blockOf } from "../../ip/block.ts";
import { type Prefix, parseInterfaceAddress, prefixContains } from "../../ip/prefix.ts";
import { affineNode, type IPAMBlock, NODE_ATTRIBUTE } from "../../model/ipam-block.ts";
import { affinitiesPrefix, resourcesPrefix } from "../../model/keys.ts";
import type { Pool } from "../pools.ts";
import { decodeAffinity, decodePool } from "../records.ts";
import { allocationsIn, type NodeAllocation, OTHER_NAMESPACE } from "./allocations.ts";
import { readBorrowings } from "./borrowings.ts";
import { readBlocks } from "./read-keys.ts";

/** What blocks say of a node. */
export interface BlockRecords {
  readonly pools: readonly Pool[];
  /** The blocks of the node. */
  readonly blocks: readonly IPAMBlock[];
  /** Blocks of others in which the node has, or may have, addresses. */
  readonly otherBlocks: readonly IPAMBlock[];
  readonly allocations: readonly NodeAllocation[];
}

export interface NodeRecords extends BlockRecords {
  /** By their keys. */
  readonly endpoints: ReadonlyMap<string, Entry>;
}

export async function readNodeRecords(store: Datastore, node: string): Promise<NodeRecords> {
  const affinities = (await readAllEntries(store, affinitiesPrefix(node))).flatMap(
    (entry) => decodeAffinity(entry) ?? [],
  );
  const borrowings = await readBorrowings(store, node);
  const pools = await readPools(store);
  const claimed = await readBlocks(
    store,
    [...affinities, ...borrowings].map(({ cidr }) => cidr),
  );
  const endpoints = await readEndpoints(store, { node, blocks: claimed });
  const further = await readBlocks(store, blocksOfOthers(endpoints.values(), { pools, known: claimed }));
  return { ...recordsIn([...claimed, ...further], { node, pools }), endpoints };
}

/** `cidrs`: of all blocks in which the node may have addresses. */
export async function readBlockRecords(
  store: Datastore,
  node: string,
  cidrs: readonly Prefix[],
): Promise<BlockRecords> {
  const pools = await readPools(store);
  return recordsIn(await readBlocks(store, cidrs), { node, pools });
}

async function readPools(store: Datastore): Promise<readonly Pool[]> {
  return readEach(await readAllEntries(store, resourcesPrefix("ippools")), decodePool).readable;
}

function recordsIn(
  blocks: readonly IPAMBlock[],
  { node, pools }: { readonly node: string; readonly pools: readonly Pool[] },
): BlockRecords {
  const [own, others] = split(blocks, (block) => affineNode(block) === node);
  return {
    pools,
    blocks: own,
    otherBlocks: others,
    allocations: [...own, ...others].flatMap((block) => allocationsOfNode(block, node)),
  };
}

/** Names of endpoints begin with the node and the orchestrator. */
async function readEndpoints(
  store: Datastore,
  { node, blocks }: { readonly node: string; readonly blocks: readonly IPAMBlock[] },
): Promise<ReadonlyMap<string, Entry>> {
  const beginning = (namespace: string, orchestrator: "cni" | "k8s") =>
    `${resourcesPrefix("workloadendpoints", namespace)}${node.replaceAll("-", "--")}-${orchestrator}-`;
  const namespaces = blocks.flatMap((block) => namespacesOfNode(block, node));
  const prefixes = new Set([
    beginning(OTHER_NAMESPACE, "cni"),
    ...namespaces.map((namespace) => beginning(namespace, "k8s")),
  ]);
  const found = new Map<string, Entry>();
  for (const prefix of prefixes) {
    for (const entry of await readAllEntries(store, prefix)) found.set(entry.key, entry);
  }
  return found;
}

function split<Item>(items: readonly Item[], isFirst: (item: Item) => boolean): [readonly Item[], readonly Item[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}

/** The blocks that addresses of the endpoints lie in, and that are not known yet. */
function blocksOfOthers(
  endpoints: Iterable<Entry>,
  { pools, known }: { readonly pools: readonly Pool[]; readonly known: readonly IPAMBlock[] },
): readonly Prefix[] {
  return [...endpoints].flatMap(addressesOfEntry).flatMap((address) => {
    if (known.some(({ cidr }) => prefixContains(cidr, address))) return [];
    const pool = pools.find(({ cidr }) => prefixContains(cidr, address));
    return pool === undefined ? [] : blockOf(address, pool.blockLength);
  });
}

/** Read by pattern: this is only a guess at blocks, and the blocks decide. */
function addressesOfEntry({ value }: Entry): readonly Address[] {
  const texts = /"ipNetworks":\s*\[([^\]]*)\]/.exec(value)?.[1]?.split(",") ?? [];
  return texts.flatMap((text) => parseInterfaceAddress(text.trim().replaceAll('"', ""))?.address ?? []);
}

function allocationsOfNode(block: IPAMBlock, node: string): readonly NodeAllocation[] {
  return allocationsIn(block).filter((allocation) => allocation.node === node);
}

function namespacesOfNode(block: IPAMBlock, node: string): readonly string[] {
  return block.attributes.flatMap(({ secondary }) =>
    secondary[NODE_ATTRIBUTE] === node && secondary["namespace"] !== undefined ? secondary["namespace"] : [],
  );
}
