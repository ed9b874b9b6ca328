/** The blocks of the datastore and who has which of their addresses: for reports, never on the way of an ADD. */
import type { Datastore } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/read-all.ts";
import { type Address, type Family, formatAddress } from "../../ip/address.ts";
import { type Prefix, prefixCovers } from "../../ip/prefix.ts";
import { addressAt, attributesOf } from "../../ipam/block.ts";
import { type IPAMBlock, readBlock } from "../../model/ipam-block.ts";
import { blocksPrefix } from "../../model/keys.ts";

/** An address that is given, and what is known of its owner. */
export interface Allocation {
  readonly address: Address;
  readonly block: Prefix;
  readonly handle: string | undefined;
  readonly sequenceNumber: bigint | undefined;
  readonly secondary: Readonly<Record<string, string>>;
}

export async function readBlocks(store: Datastore, family: Family): Promise<readonly IPAMBlock[]> {
  return (await readAllEntries(store, blocksPrefix(family))).map((entry) => readBlock(entry.value, entry.key));
}

/** Of both families. */
export async function readAllBlocks(store: Datastore): Promise<readonly IPAMBlock[]> {
  return [...(await readBlocks(store, 4)), ...(await readBlocks(store, 6))];
}

export async function blocksWithin(store: Datastore, pool: Prefix): Promise<readonly IPAMBlock[]> {
  const blocks = await readBlocks(store, pool.network.family);
  return blocks.filter((block) => prefixCovers(pool, block.cidr));
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

/** `10.0.0.5 (pod prod/web-0 on node n1)`, or by its handle where there is no pod. */
export function describeAllocation({ address, handle, secondary }: Allocation): string {
  const { pod, namespace, node } = secondary;
  const owner = pod === undefined ? `handle "${handle ?? "none"}"` : `pod ${namespace ?? "?"}/${pod}`;
  return `${formatAddress(address)} (${owner}${node === undefined ? "" : ` on node ${node}`})`;
}
