/**
 * Cleans up the IPAM records of a deleted node: the addresses of its tunnels are
 * released, its affinities and its empty blocks are deleted. A block in use stays without a node and is deleted when it is
 * empty and has rested. A node that still runs may claim blocks again.
 */

import { counted } from "../../counted.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import type { Unreadable } from "../../datastore/read-each.ts";
import { PluginError } from "../../errors.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import { forgetBorrowings } from "../../ipam/leaks/borrowings.ts";
import type { ResourceName } from "../../model/keys.ts";
import { TUNNEL_ADDRESSES } from "../../model/tunnel-address.ts";
import { allocatorFor } from "../ipam/allocator.ts";
import { allocationsOf, findBlocks } from "../ipam/blocks.ts";
import type { Call, Clock, Terminal } from "../main/context.ts";
import type { ActionResult } from "../resources/action-result.ts";
import { ipamRecordRemedy } from "../resources/ipam-record-remedy.ts";
import { affinitiesOfNode, type BlockAffinity, releaseAffinities } from "./block-affinities.ts";

/** Returns no note if there was nothing to release. Fails for the affinity of an unreadable block, after all others are released. */
export async function releaseNode(
  store: Datastore,
  { name: node }: ResourceName,
  context: Call & Terminal & Clock,
): Promise<Pick<ActionResult, "note">> {
  const allocator = allocatorFor(store, context);
  for (const { handlePrefix } of TUNNEL_ADDRESSES)
    await allocator.releaseHandle({ handle: `${handlePrefix}${node}`, node });
  const { affinities, unreadable } = await affinitiesOfNode(store, node);
  const released = await releaseAffinities(store, affinities, {
    context,
    inUse: "release",
    resting: "forget unless set",
  });
  if (unreadable[0]) throw affinityNotReleased(node, unreadable[0]);
  await forgetBorrowings(store, node);
  if (released.length === 0) return {};
  const affinitiesText =
    released.length === 1 ? "its claim on 1 block was" : `its claims on ${released.length} blocks were`;
  const count = await countLeft(store, released);
  const left =
    count === 0
      ? ""
      : `; ${counted(count, "address stays", "addresses stay")} in use, in blocks that no longer belong to a node`;
  return { note: `${affinitiesText} released${left}` };
}

/** The number of addresses in use in blocks that lost their node. */
async function countLeft(store: Datastore, released: readonly BlockAffinity[]): Promise<number> {
  const names = new Set(released.map(({ cidr }) => formatPrefix(cidr)));
  const blocks = await findBlocks(store);
  const left = blocks.readable.filter(({ cidr, affinity }) => affinity === undefined && names.has(formatPrefix(cidr)));
  return left.flatMap(allocationsOf).length;
}

function affinityNotReleased(node: string, { key, failure }: Unreadable): PluginError {
  return new PluginError(
    failure.kind,
    `Cannot release a block claim of node "${node}": ${failure.message}; the node and its other claims were deleted`,
    { details: `${ipamRecordRemedy(key)}; then delete the node again`, cause: failure },
  );
}
