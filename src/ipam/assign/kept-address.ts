/**
 * What is kept for the identity of the pod (model/kept-address.ts):
 *
 *   waits                          it is taken, on whatever node, whatever became of its pool
 *   used by this container         it is held: a second ADD
 *   used by another container      `KeptInUse`: ADD is refused until that one's use has ended
 *
 * An attachment is kept as a whole or not at all. Pure.
 */
import type { Wanted } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { type Address, formatAddress, isSameAddress } from "../../ip/address.ts";
import { prefixContains } from "../../ip/prefix.ts";
import { INTERFACE_ATTRIBUTE } from "../../model/ipam-block.ts";
import {
  CONTAINER_ATTRIBUTE,
  KEPT_ATTRIBUTE,
  type KeptAddress,
  keptOf,
  OWNER_ATTRIBUTE,
  USUAL_KEEP_SECONDS,
} from "../../model/kept-address.ts";
import { quoted } from "../../quote.ts";
import { addressAt, attributesOf } from "../block.ts";
import { allocationsIn, type NodeAllocation } from "../leaks/allocations.ts";
import type { Pool } from "../pools.ts";
import type { AssignRequest, KeepRequest } from "../request.ts";
import type { KnownBlock, View } from "../view.ts";
import type { Choice, Search } from "./choice.ts";
import type { GivenRequest } from "./given-address.ts";
import { keepAddress, recordAgain } from "./held-address.ts";

/** A request whose addresses are kept, under the handle of the identity. */
export interface KeepingRequest extends AssignRequest {
  readonly keep: KeepRequest;
}

/** Another container uses what is kept for the identity. */
export class KeptInUse extends PluginError {
  constructor(
    title: string,
    readonly uses: readonly NodeAllocation[],
  ) {
    const [first] = uses;
    const addresses = uses.map(({ address }) => `"${formatAddress(address)}"`).join(" and ");
    const [are, them] = uses.length === 1 ? ["address", "it"] : ["addresses", "them"];
    super(
      "try-again-later",
      `Cannot assign addresses to ${title}: its kept ${are} ${addresses} ${uses.length === 1 ? "is" : "are"} still used by container ${quoted(first?.containerId ?? "")} on node ${quoted(first?.node ?? "")}`,
      {
        details: `the DEL of that container gives ${them} back; if its node is lost, delete the Node, or release ${them} once the container certainly does not run any more: ${uses.map(({ address }) => `${identity.adminTool} ipam release --ip ${formatAddress(address)} --force`).join("; ")}`,
      },
    );
  }
}

/** The request under the handle of the identity. */
export function keepingRequest(request: AssignRequest, keep: KeepRequest): KeepingRequest {
  return { ...request, keep, handle: keep.handle };
}

/** As the allocation records it; `pool`: where the address is. */
export function keepAttributes(keep: KeepRequest, pool: Pool | undefined): Readonly<Record<string, string>> {
  const seconds = keep.seconds ?? pool?.keepForSeconds ?? USUAL_KEEP_SECONDS;
  return {
    [KEPT_ATTRIBUTE]: `${seconds}`,
    [CONTAINER_ATTRIBUTE]: keep.containerId,
    ...(keep.owner === undefined ? {} : { [OWNER_ATTRIBUTE]: keep.owner }),
  };
}

/** Whether anything is kept for the identity, for this interface, or what must be read to tell. */
export function holdsKept(view: View, request: KeepingRequest): boolean | readonly Wanted[] {
  const unread = view.handleBlocks(request.keep.handle).filter((cidr) => view.block(cidr).kind === "unknown");
  return unread.length > 0 ? unread.map((cidr) => view.wantedBlock(cidr)) : keptIn(view, request).length > 0;
}

/** Throws `KeptInUse` if another container uses any of it. */
export function requireUnused(view: View, request: KeepingRequest): void {
  const { keep } = request;
  const others = keptIn(view, request).flatMap(({ address, kept, known: { block } }): readonly NodeAllocation[] => {
    if (kept.user === undefined || isOwn(kept, address, request)) return [];
    return allocationsIn(block).filter((each) => isSameAddress(each.address, address));
  });
  if (others.length > 0) throw new KeptInUse(keep.title, others);
}

/** The address of this family that is kept for the identity; `undefined` if there is none. */
export function keptAddress(
  search: Search,
  addressRequest: GivenRequest | { readonly kind: "automatic" | "of list" },
  request: KeepingRequest,
): Exclude<Choice, { kind: "read" }> | undefined {
  const held = keptIn(search.view, request).filter(({ address }) => address.family === search.family);
  const own = held.find(({ kept }) => kept.user !== undefined) ?? held[0];
  if (own === undefined) return undefined;
  if (addressRequest.kind === "given" && !isSameAddress(addressRequest.address, own.address)) {
    throw otherThanKept(addressRequest, own.address, request.keep);
  }
  const { known, ordinal, kept } = own;
  if (kept.user !== undefined) {
    const choice = keepAddress(search, known, ordinal);
    return choice.kind === "read" ? undefined : choice;
  }
  const again = recordAgain(search, known, ordinal);
  return again && { ...again, waited: true };
}

export function poolAt(view: View, address: Address): Pool | undefined {
  return view.pools().find(({ cidr, overlaps }) => overlaps === undefined && prefixContains(cidr, address));
}

interface KeptPlace {
  readonly known: KnownBlock;
  readonly ordinal: number;
  readonly address: Address;
  readonly kept: KeptAddress;
}

/** For this interface, in the blocks that were read. */
function keptIn(view: View, { keep, interface: ifname }: KeepingRequest): readonly KeptPlace[] {
  const places: KeptPlace[] = [];
  for (const known of view.knownBlocks()) {
    for (const ordinal of known.block.allocations.keys()) {
      const attribute = attributesOf(known.block, ordinal);
      if (attribute?.handleId !== keep.handle) continue;
      const kept = keptOf(attribute);
      const recorded = attribute.secondary[INTERFACE_ATTRIBUTE];
      if (kept === undefined || (recorded ?? ifname) !== (ifname ?? recorded)) continue;
      places.push({ known, ordinal, address: addressAt(known.block, ordinal), kept });
    }
  }
  return places;
}

/** Container IDs are unique on one host; the host may have been renamed, and has the link then. */
function isOwn({ user }: KeptAddress, address: Address, { keep, node, onAnyNode = [] }: KeepingRequest): boolean {
  if (user?.containerId !== keep.containerId) return false;
  return user.node === undefined || user.node === node || onAnyNode.includes(formatAddress(address));
}

function otherThanKept({ address, place }: GivenRequest, kept: Address, { title }: KeepRequest): PluginError {
  const shown = `"${formatAddress(address)}"${place === undefined ? "" : ` (${place})`}`;
  return new PluginError(
    "address-taken",
    `Cannot assign address ${shown}: "${formatAddress(kept)}" is kept for ${title}`,
    {
      details: `request that address, or give it up: ${identity.adminTool} ipam release --ip ${formatAddress(kept)}`,
    },
  );
}
