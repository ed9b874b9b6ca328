/**
 * GC: releases addresses of this network's attachments on this node that the
 * runtime no longer lists.
 *
 * The runtime's list only concerns its own node: addresses of other nodes in the
 * same network are kept. Only what belongs to the node is read, whatever the size of
 * the cluster (leaks/node-records.ts). Each address is released only with the sequence
 * number it was found with: one that was assigned again in the meantime is kept.
 */
import type { GcCall } from "../../cni/call.ts";
import { pagesBelow } from "../../datastore/pages.ts";
import type { Address } from "../../ip/address.ts";
import { type BlockAttribute, INTERFACE_ATTRIBUTE, type IPAMBlock, NETWORK_ATTRIBUTE } from "../../model/ipam-block.ts";
import { keptOf } from "../../model/kept-address.ts";
import { HANDLES_PREFIX, parseKey } from "../../model/keys.ts";
import { addressAt, attributesOf } from "../block.ts";
import { readyForReleasing, WANTED_CLUSTER } from "../cluster.ts";
import { countedBy, heldIn } from "../handle-counts.ts";
import { readNodeRecords } from "../leaks/node-records.ts";
import { requireOwnNodeEntry, wantedNode } from "../node-machine.ts";
import { type GuardedAddress, guarded } from "../request.ts";
import { type Session, thisMachine } from "../session.ts";

export async function gc({ networkName: network, validAttachments }: GcCall, session: Session): Promise<void> {
  if (validAttachments === undefined) return;
  await releaseLeaked({ network, isKept: among(validAttachments) }, session);
}

/** Whether an attachment keeps its addresses; without an interface, whether any attachment of the container does. */
export type IsKept = (containerId: string, ifname: string | undefined) => boolean;

export function among(
  attachments: readonly { readonly containerId?: string | undefined; readonly ifname?: string | undefined }[],
): IsKept {
  return (containerId, ifname) =>
    attachments.some((each) => each.containerId === containerId && (ifname ?? each.ifname) === each.ifname);
}

export interface Leaving extends Pick<Keepers, "network" | "isKept"> {
  /** Called with addresses before they are released. */
  readonly forget?: (addresses: readonly Address[]) => Promise<void>;
}

export async function releaseLeaked({ network, isKept, forget }: Leaving, session: Session): Promise<void> {
  const store = await session.store();
  const { answers } = await store.read([WANTED_CLUSTER, wantedNode(session.node)]);
  readyForReleasing(answers[0]);
  requireOwnNodeEntry(answers[1], thisMachine(session));

  const keep = { network, node: session.node, isKept };
  const records = await readNodeRecords(store, session.node);
  const blocks = [...records.blocks, ...records.otherBlocks];
  const leaked = blocks.flatMap((block) => leakedAddresses(block, keep));
  await forget?.(leaked.map(({ address }) => address));
  await releaseAll(leaked, session);
  // If all changes are committed at once, no call leaves a handle that counts too many.
  if (store.atomicity === "one object") await recountHandles(keep, heldAfter(blocks, leaked), session);
}

/** How many addresses each handle has in the blocks once the leaked ones are released. */
function heldAfter(blocks: readonly IPAMBlock[], leaked: readonly GuardedAddress[]): ReadonlyMap<string, number> {
  const held = heldIn(blocks);
  for (const { handle = "" } of leaked) held.set(handle, (held.get(handle) ?? 0) - 1);
  return held;
}

async function releaseAll(leaked: readonly GuardedAddress[], session: Session): Promise<void> {
  if (leaked.length === 0) return;
  const { released } = await (await session.allocator()).releaseAddresses(leaked);
  session.log.info("Released addresses of containers that no longer exist", { count: released.length });
}

/** Corrects handles of the network, on this node, that count too many addresses; releases no address. */
async function recountHandles(
  { network, node }: Keepers,
  held: ReadonlyMap<string, number>,
  session: Session,
): Promise<void> {
  const [store, allocator] = [await session.store(), await session.allocator()];
  for await (const { entries } of pagesBelow(store, HANDLES_PREFIX, { node })) {
    for (const entry of entries) {
      const parts = parseKey(entry.key);
      if (parts?.kind !== "handle" || !parts.handleId.startsWith(`${network}.`)) continue;
      if (countedBy(parts.handleId, entry) > (held.get(parts.handleId) ?? 0))
        await allocator.recountHandle({ handle: parts.handleId });
    }
  }
}

/** The network and node to collect, and which attachments keep their addresses. */
export interface Keepers {
  readonly network: string;
  readonly node: string;
  readonly isKept: IsKept;
}

/** The addresses of the block that belong to this network and node but not to an attachment that keeps them. */
export function leakedAddresses(block: IPAMBlock, keep: Keepers): readonly GuardedAddress[] {
  return [...block.allocations.keys()].flatMap((ordinal): GuardedAddress[] => {
    const attributes = attributesOf(block, ordinal);
    const handle = attributes?.handleId;
    if (!attributes || handle === undefined) return [];
    const containerId = containerOf(attributes, handle, keep);
    if (containerId === undefined || keep.isKept(containerId, attributes.secondary[INTERFACE_ATTRIBUTE])) return [];
    const sequenceNumber = block.sequenceNumberForAllocation[ordinal];
    return [guarded({ address: addressAt(block, ordinal), handle, sequenceNumber })];
  });
}

/** `undefined` if the address is not of this network and node, or if no container uses it. */
function containerOf(attributes: BlockAttribute, handle: string, keep: Keepers): string | undefined {
  const kept = keptOf(attributes);
  if (kept === undefined) return isOurs(attributes, handle, keep) ? handle.slice(keep.network.length + 1) : undefined;
  const isOfNetwork = kept.network === keep.network && kept.user?.node === keep.node;
  return isOfNetwork ? kept.user?.containerId : undefined;
}

/** Network names may contain dots: `a.b.c` may be of network `a` or `a.b`, and only the attribute shows which. */
function isOurs({ secondary }: BlockAttribute, handle: string, { network, node }: Keepers): boolean {
  if (secondary["node"] !== node || !handle.startsWith(`${network}.`)) return false;
  const recorded = secondary[NETWORK_ATTRIBUTE];
  return recorded === undefined ? !handle.slice(network.length + 1).includes(".") : recorded === network;
}
