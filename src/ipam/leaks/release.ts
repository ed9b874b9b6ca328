/** Gives back what a search for leaks has found. */
import type { Datastore } from "../../datastore/datastore.ts";
import { type Address, formatAddress } from "../../ip/address.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import type { Allocator } from "../allocator.ts";
import type { Leak } from "./find.ts";
import type { NodeRecords } from "./node-records.ts";

/** Each only if it has not been assigned again; with its endpoint, if that has not changed. Returns what was released. */
export async function releaseLeaks(
  leaks: readonly Leak[],
  { endpoints }: Pick<NodeRecords, "endpoints">,
  { store, allocator }: { readonly store: Datastore; readonly allocator: Allocator },
): Promise<readonly Address[]> {
  const { released } = await allocator.releaseAddresses(
    leaks.map(({ allocation: { address, handle, sequenceNumber } }) => ({
      address,
      handle,
      ...(sequenceNumber === undefined ? {} : { sequenceNumber }),
    })),
  );
  const texts = new Set(released.map(formatAddress));
  for (const { allocation } of leaks) {
    const entry = allocation.endpointKey === undefined ? undefined : endpoints.get(allocation.endpointKey);
    // A newer sandbox of the same pod has an endpoint of the same name.
    if (entry === undefined || !texts.has(formatAddress(allocation.address))) continue;
    if (!entry.value.includes(`"${allocation.containerId}"`)) continue;
    await store.commit([{ kind: "delete", key: entry.key, revision: entry.revision }]);
  }
  return released;
}

/** Returns the number of blocks that were given back. */
export async function releaseSurplus(
  blocks: readonly IPAMBlock[],
  { node, allocator }: { readonly node: string; readonly allocator: Allocator },
): Promise<number> {
  let count = 0;
  for (const { cidr } of blocks) {
    if ((await allocator.releaseAffinity({ node, block: cidr, inUse: "keep" })) === "released") count += 1;
  }
  return count;
}
