/** What `describe` shows about addresses: the usage of a pool, the blocks of a node, the addresses of an endpoint. */
import type { Datastore } from "../../datastore/datastore.ts";
import { parseAddress } from "../../ip/address.ts";
import { formatPrefix, parseInterfaceAddress, prefixContains } from "../../ip/prefix.ts";
import { ownerOfKept } from "../../ipam/leaks/waiting-addresses.ts";
import type { IPPool } from "../../model/ip-pool.ts";
import { affineNode } from "../../model/ipam-block.ts";
import type { Node } from "../../model/node.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import type { DescribedSection } from "../kinds/kind.ts";
import { describeAppliedPolicies } from "../policy/describe-policies.ts";
import { allocationAt, blocksOf } from "./address-blocks.ts";
import { findLists } from "./address-lists.ts";
import { blockAt, blocksWithin, findBlocks, keptOfAllocation } from "./blocks.ts";
import { findPools, findReserved } from "./pools.ts";
import { type BlockUsage, blockUsages, poolUsage, restingIn } from "./usage.ts";

export async function describePool(
  store: Datastore,
  { metadata }: IPPool,
  now: Date,
): Promise<readonly DescribedSection[]> {
  const pool = (await findPools(store)).readable.find(({ name }) => name === metadata.name);
  if (!pool) return [];
  const blocks = await blocksWithin(store, pool.cidr);
  const records = {
    blocks: blocks.readable,
    unreadable: blocks.unreadable.flatMap(({ key }) => blockAt(key) ?? []),
    reserved: (await findReserved(store)).readable,
  };
  const usage = poolUsage(pool, records);
  const resting = restingIn(pool, records, now);
  const lists = (await findLists(store)).readable.flatMap(({ name, addresses }) => {
    const within = addresses.filter((address) => prefixContains(pool.cidr, address)).length;
    return within === 0 ? [] : `${name} (${within})`;
  });
  const counts = [
    ["Size", usage.size],
    ["Used", usage.used],
    ...(usage.kept === 0 ? [] : [["Kept for pods", usage.kept] as const, ["Kept, waiting", usage.waiting] as const]),
    ["Reserved", usage.reserved],
    ["Free", usage.free],
    ...(resting === 0 ? [] : [["Free, resting", resting] as const]),
    ...(usage.unreadable === 0n ? [] : [["In unreadable blocks", usage.unreadable] as const]),
  ] as const;
  return [
    {
      title: "Addresses",
      rows: [
        ...counts.map(([title, count]) => [`${title}:`, String(count)]),
        ...(lists.length === 0 ? [] : [["In lists:", lists.join(", ")]]),
      ],
    },
    {
      title: "Blocks",
      rows: [...blockRows(usage.blocks), ...usage.unreadableBlocks.map((cidr) => [cidr, "unreadable"])],
    },
  ];
}

export async function describeNode(store: Datastore, { metadata }: Node): Promise<readonly DescribedSection[]> {
  const { readable } = await findBlocks(store);
  const own = readable.filter((block) => affineNode(block) === metadata.name);
  return [{ title: "Blocks", rows: blockRows(blockUsages(own, [])) }];
}

export async function describeEndpoint(
  store: Datastore,
  endpoint: WorkloadEndpoint,
): Promise<readonly DescribedSection[]> {
  const { spec } = endpoint;
  const pools = (await findPools(store)).readable;
  const rows: string[][] = [];
  for (const text of spec.ipNetworks ?? []) {
    const address = parseInterfaceAddress(text)?.address ?? parseAddress(text);
    if (!address) continue;
    const { readable } = await blocksOf(store, address);
    const block = readable.find((each) => allocationAt(each, address));
    const allocation = block && allocationAt(block, address);
    const pool = pools.find(({ cidr }) => prefixContains(cidr, address))?.name ?? "no pool";
    const kept = allocation && keptOfAllocation(allocation);
    const owner = `handle ${allocation?.handle ?? "none"}${kept === undefined ? "" : `, kept for ${ownerOfKept(kept)}`}`;
    const state = allocation ? owner : "not assigned";
    rows.push([text, `pool ${pool}`, block ? `block ${formatPrefix(block.cidr)}` : "no block", state]);
  }
  return [{ title: "Addresses", rows }, ...(await describeAppliedPolicies(store, endpoint))];
}

function blockRows(blocks: readonly BlockUsage[]): readonly (readonly string[])[] {
  return blocks.map(({ cidr, node, used, size }) => [
    cidr,
    node === undefined ? "no node" : `node ${node}`,
    `${used} of ${size} used`,
  ]);
}
