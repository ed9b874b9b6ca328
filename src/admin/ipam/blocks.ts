/** The blocks in the datastore and the owners of their addresses: for reports, never on the path of an ADD. */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { type ReadEach, readEach } from "../../datastore/read-each.ts";
import { type Address, type Family, formatAddress } from "../../ip/address.ts";
import { type Prefix, prefixCovers } from "../../ip/prefix.ts";
import { addressAt, attributesOf } from "../../ipam/block.ts";
import { ownerOfKept } from "../../ipam/leaks/waiting-addresses.ts";
import { decodeBlock } from "../../ipam/records.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import { keptOf } from "../../model/kept-address.ts";
import { blocksPrefix, parseKey } from "../../model/keys.ts";
import { tunnelTitle } from "../../model/tunnel-address.ts";

/** An address in use, and what is known about its owner. */
export interface Allocation {
  readonly address: Address;
  readonly block: Prefix;
  readonly handle: string | undefined;
  readonly sequenceNumber: bigint | undefined;
  readonly secondary: Readonly<Record<string, string>>;
}

/** The blocks of one address family, or of both. */
export async function findBlocks(store: Datastore, family?: Family): Promise<ReadEach<IPAMBlock>> {
  const entries: Entry[] = [];
  for (const each of family === undefined ? ([4, 6] as const) : [family]) {
    entries.push(...(await readAllEntries(store, blocksPrefix(each))));
  }
  return readEach(entries, decodeBlock);
}

/** Unreadable blocks are included if their key does not show their CIDR. */
export async function blocksWithin(store: Datastore, pool: Prefix): Promise<ReadEach<IPAMBlock>> {
  const { readable, unreadable } = await findBlocks(store, pool.network.family);
  return {
    readable: readable.filter((block) => prefixCovers(pool, block.cidr)),
    unreadable: unreadable.filter(({ key }) => {
      const cidr = blockAt(key);
      return cidr === undefined || prefixCovers(pool, cidr);
    }),
  };
}

/** The block that has this key; `undefined` if it is not the key of a block. */
export function blockAt(key: string): Prefix | undefined {
  const parts = parseKey(key);
  return parts?.kind === "block" ? parts.cidr : undefined;
}

export function allocationsOf(block: IPAMBlock): readonly Allocation[] {
  return block.allocations.flatMap((index, ordinal): Allocation[] => {
    if (index === undefined) return [];
    const attributes = attributesOf(block, ordinal);
    return [
      {
        address: addressAt(block, ordinal),
        block: block.cidr,
        handle: attributes?.handleId,
        sequenceNumber: block.sequenceNumberForAllocation[ordinal],
        secondary: attributes?.secondary ?? {},
      },
    ];
  });
}

/** `undefined` if it is not kept. */
export function keptOfAllocation({ handle, secondary }: Pick<Allocation, "handle" | "secondary">) {
  return handle === undefined ? undefined : keptOf({ handleId: handle, secondary });
}

/** `10.0.0.5 (pod prod/web-0 on node n1)` */
export function describeAllocation(
  allocation: Pick<Allocation, "address" | "handle" | "secondary"> & Partial<Allocation>,
): string {
  return `${formatAddress(allocation.address)} (${describeOwner(allocation)})`;
}

/**
 * `pod prod/web-0 on node n1`, or with the container's name, or with its handle if it has neither; the tunnel of a node by its
 * title; `kept for pod prod/db-0` if it waits.
 */
export function describeOwner(allocation: Pick<Allocation, "handle" | "secondary">): string {
  const { handle, secondary } = allocation;
  const kept = keptOfAllocation(allocation);
  if (kept !== undefined && kept.user === undefined) return `kept for ${ownerOfKept(kept)}`;
  const { pod, namespace, container, node } = secondary;
  const tunnel = tunnelTitle(secondary);
  if (tunnel !== undefined) return `${tunnel} of node ${node ?? "?"}`;
  const unnamed = container === undefined ? `handle "${handle ?? "none"}"` : `container "${container}"`;
  const owner = pod === undefined ? unnamed : `pod ${namespace ?? "?"}/${pod}`;
  return `${owner}${node === undefined ? "" : ` on node ${node}`}`;
}
