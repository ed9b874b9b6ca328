/**
 * GC: gives back what attachments of this network on this node hold that the
 * runtime does not know any more.
 *
 * The runtime speaks for its own node: what other nodes hold of the same
 * network is none of its business. A leak may lie in a block of another node
 * (borrowed), so every block is looked at, a page at a time. Each address is
 * released under the sequence number it was found with: one that was given anew
 * meanwhile stays.
 */
import type { Attachment } from "../../cni/attachments.ts";
import type { GcCall } from "../../cni/call.ts";
import { pagesBelow } from "../../datastore/pages.ts";
import { type BlockAttribute, type IPAMBlock, readBlock } from "../../model/ipam-block.ts";
import { blocksPrefix } from "../../model/keys.ts";
import { addressAt, attributesOf, INTERFACE_ATTRIBUTE, NETWORK_ATTRIBUTE } from "../block.ts";
import { requireReady, WANTED_CLUSTER } from "../cluster.ts";
import type { GuardedAddress } from "../request.ts";
import type { Session, Surroundings } from "./session.ts";

export async function gc(
  call: GcCall,
  session: Session,
  surroundings: Pick<Surroundings, "now" | "uuid">,
): Promise<void> {
  const { validAttachments } = call;
  if (validAttachments === undefined) return;
  const { answers } = await session.store.read([WANTED_CLUSTER]);
  requireReady(answers[0], { whenBare: "accept", now: surroundings.now(), uid: surroundings.uuid() });

  const keep = { network: call.networkName, node: session.node, valid: validAttachments };
  for (const family of [4, 6] as const) {
    for await (const { entries } of pagesBelow(session.store, blocksPrefix(family))) {
      const leaked = entries.flatMap((entry) => leakedAddresses(readBlock(entry.value, entry.key), keep));
      if (leaked.length === 0) continue;
      const { released } = await session.allocator.releaseAddresses(leaked);
      session.log.info("Released addresses of containers that are gone", { count: released.length });
    }
  }
}

/** Whose addresses are judged, and who may keep them. */
export interface Keepers {
  readonly network: string;
  readonly node: string;
  readonly valid: readonly Attachment[];
}

/** The addresses of the block that belong to this network and node, and to no valid attachment. */
export function leakedAddresses(block: IPAMBlock, keep: Keepers): readonly GuardedAddress[] {
  return [...block.allocations.keys()].flatMap((ordinal): GuardedAddress[] => {
    const attributes = attributesOf(block, ordinal);
    const handle = attributes?.handleId;
    if (!attributes || handle === undefined || !isOurs(attributes, handle, keep)) return [];
    if (isValid(attributes, handle.slice(keep.network.length + 1), keep.valid)) return [];
    const sequenceNumber = block.sequenceNumberForAllocation[ordinal];
    const address = addressAt(block, ordinal);
    return [{ address, handle, ...(sequenceNumber === undefined ? {} : { sequenceNumber }) }];
  });
}

/** Names of networks may hold dots: `a.b.c` is of network `a` or of `a.b`, which only the attribute can tell. */
function isOurs({ secondary }: BlockAttribute, handle: string, { network, node }: Keepers): boolean {
  if (secondary["node"] !== node || !handle.startsWith(`${network}.`)) return false;
  const recorded = secondary[NETWORK_ATTRIBUTE];
  return recorded === undefined ? !handle.slice(network.length + 1).includes(".") : recorded === network;
}

function isValid({ secondary }: BlockAttribute, containerId: string, valid: readonly Attachment[]): boolean {
  const ifname = secondary[INTERFACE_ATTRIBUTE];
  return valid.some((each) => each.containerId === containerId && (ifname === undefined || each.ifname === ifname));
}
