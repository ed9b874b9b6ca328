/**
 * What is kept for the identity of the pod (model/kept-address.ts):
 *
 *   waits                          it is taken, on whatever node, if the request allows it
 *   waits, but for nobody          `KeptIsOver`: its pool is disabled or deleted, or its namespace was another one of the
 *                                  same name. It is released, and another one is chosen
 *   used by this container         it is held: a second ADD
 *   used by another container      `KeptInUse`: ADD is refused until that one's use has ended
 *
 * An attachment is kept as a whole or not at all. Pure.
 */
import { counted } from "../../counted.ts";
import type { Wanted } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { type Address, formatAddress, isSameAddress } from "../../ip/address.ts";
import { prefixContains } from "../../ip/prefix.ts";
import { isDuration, wholeSecondsOf } from "../../model/duration.ts";
import { affineNode, INTERFACE_ATTRIBUTE } from "../../model/ipam-block.ts";
import {
  CONTAINER_ATTRIBUTE,
  KEPT_ATTRIBUTE,
  type KeptAddress,
  keptOf,
  NAMESPACE_UID_ATTRIBUTE,
  OWNER_ATTRIBUTE,
  USUAL_KEEP_SECONDS,
  USUAL_LONGEST_KEEP_FOR,
} from "../../model/kept-address.ts";
import { quoted } from "../../quote.ts";
import { addressAt, attributesOf } from "../block.ts";
import { allocationsIn, type NodeAllocation } from "../leaks/allocations.ts";
import { askedPools, type Pool, poolHolding } from "../pools.ts";
import { type AssignRequest, type GuardedAddress, guarded, type KeepRequest } from "../request.ts";
import type { KnownBlock, View } from "../view.ts";
import type { Choice, Search } from "./choice.ts";
import { describeGiven } from "./given-address.ts";
import { keepAddress, recordAgain } from "./held-address.ts";
import { type OneRequest, requireNamespace, shownList } from "./listed-address.ts";

/** A request whose addresses are kept, under the handle of the identity. */
export interface KeepingRequest extends AssignRequest {
  readonly keep: KeepRequest;
}

/** Another container uses what is kept for the identity. */
export class KeptInUse extends PluginError {
  constructor(
    title: string,
    used: readonly KeptPlace[],
    /** Empty if a record does not tell all of a use: then only its container, or an administrator, can end it. */
    readonly uses: readonly NodeAllocation[],
  ) {
    const [first] = used;
    const texts = used.map(({ address }) => formatAddress(address));
    const [are, is, them] = used.length === 1 ? ["address", "is", "it"] : ["addresses", "are", "them"];
    const { containerId = "", node } = first?.kept.user ?? {};
    super(
      "try-again-later",
      `Cannot assign addresses to ${title}: its kept ${are} ${texts.map(quoted).join(" and ")} ${is} still used by container ${quoted(containerId)} on node ${quoted(node ?? "unknown")}`,
      {
        details: `the DEL of that container gives ${them} back; if its node is lost, delete the Node, or release ${them} once the container certainly does not run any more: ${texts.map((text) => `${identity.adminTool} ipam release --ip ${text} --force`).join("; ")}`,
      },
    );
  }
}

/** What waits is not given again: it is to be released, and the request decided again. */
export class KeptIsOver extends PluginError {
  constructor(
    title: string,
    readonly addresses: readonly GuardedAddress[],
  ) {
    super(
      "try-again-later",
      `Cannot assign addresses to ${title}: ${counted(addresses.length, "kept address", "kept addresses")} could not be released`,
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
    ...(keep.namespaceUid === undefined ? {} : { [NAMESPACE_UID_ATTRIBUTE]: keep.namespaceUid }),
  };
}

/** Whether anything is kept for the identity, for this interface, or what must be read to tell. */
export function holdsKept(view: View, request: KeepingRequest): boolean | readonly Wanted[] {
  const unread = view.handleBlocks(request.keep.handle).filter((cidr) => view.block(cidr).kind === "unknown");
  return unread.length > 0 ? unread.map((cidr) => view.wantedBlock(cidr)) : keptIn(view, request).length > 0;
}

/** Throws `KeptInUse` if another container uses any of it, and `KeptIsOver` if any of it is not given again. */
export function requireUsable(view: View, request: KeepingRequest, addressRequests: readonly OneRequest[]): void {
  const { keep } = request;
  const places = keptIn(view, request);
  const used = places.filter(({ address, kept }) => kept.user !== undefined && !isOwn(kept, address, request));
  if (used.length > 0) {
    const uses = used.flatMap(({ address, known: { block } }) =>
      allocationsIn(block).filter((each) => isSameAddress(each.address, address)),
    );
    throw new KeptInUse(keep.title, used, uses.length < used.length ? [] : uses);
  }
  const over = places.filter(({ address, kept }) => {
    const isGiven = addressRequests.some((each) => each.kind === "given" && isSameAddress(each.address, address));
    return kept.user === undefined && (isOfFormerNamespace(kept, keep) || (!isGiven && isOver(view, address, keep)));
  });
  if (over.length > 0) throw new KeptIsOver(keep.title, over.map(guardedPlace));
}

function isOfFormerNamespace({ namespaceUid: before }: KeptAddress, { namespaceUid: now }: KeepRequest): boolean {
  return before !== undefined && now !== undefined && before !== now;
}

/** Its pool is disabled or gone; one that cannot be read may contain it. */
function isOver(view: View, address: Address, { when }: KeepRequest): boolean {
  const pools = view.pools().filter(({ cidr }) => prefixContains(cidr, address));
  if (pools.length === 0) return view.unreadablePools().length === 0;
  if (when === "if its pool does" && poolAt(view, address)?.forbidsKeeping === true) return true;
  return pools.every(({ disabled }) => disabled);
}

function guardedPlace({ known: { block }, ordinal, address, kept: { handle } }: KeptPlace): GuardedAddress {
  const sequenceNumber = block.sequenceNumberForAllocation[ordinal];
  return { ...guarded({ address, handle, sequenceNumber }), how: "for good" };
}

/** The address of this family that is kept for the identity; `undefined` if there is none. */
export function keptAddress(
  search: Search,
  addressRequest: OneRequest,
  request: KeepingRequest,
): Exclude<Choice, { kind: "read" }> | undefined {
  const held = keptIn(search.view, request).filter(({ address }) => address.family === search.family);
  const own = held.find(({ kept }) => kept.user !== undefined) ?? held[0];
  if (own === undefined) return undefined;
  const { known, ordinal, kept } = own;
  if (kept.user !== undefined) {
    requireSame(addressRequest, own, request.keep);
    const choice = keepAddress(search, known, ordinal);
    return choice.kind === "read" ? undefined : choice;
  }
  requireRequested(search, addressRequest, own, request.keep);
  requireOwnBlock(search, own, request.keep);
  const again = recordAgain(search, known, ordinal);
  return again && { ...again, waited: true };
}

/** What waits is given only if the same request could get it as a new address. */
function requireRequested(search: Search, addressRequest: OneRequest, place: KeptPlace, keep: KeepRequest): void {
  const { view, family } = search;
  const { address } = place;
  switch (addressRequest.kind) {
    case "given": {
      requireSame(addressRequest, place, keep);
      const { pools: asked, poolsPlace } = addressRequest;
      const shown = describeGiven(addressRequest);
      poolHolding(view.pools(), address, { asked, place: poolsPlace, shown, unreadable: view.unreadablePools() });
      return;
    }
    case "of list": {
      const { list, request, addresses } = addressRequest;
      requireNamespace(search, list, request);
      if (addresses.some((each) => isSameAddress(each, address))) return;
      throw otherThanKept(`an IPv${family} address of IPAddressList ${shownList(request)}`, place, keep);
    }
    case "automatic": {
      const { pools: asked = [], poolsPlace } = addressRequest;
      // The network config is the default of new addresses.
      if (poolsPlace === undefined) return;
      const pools = askedPools(view.pools(), family, { asked, place: poolsPlace, unreadable: view.unreadablePools() });
      if (pools.some(({ cidr }) => prefixContains(cidr, address))) return;
      throw otherThanKept(
        `an IPv${family} address of pools ${asked.map(quoted).join(", ")} (${poolsPlace})`,
        place,
        keep,
      );
    }
  }
}

function requireSame(addressRequest: OneRequest, place: KeptPlace, keep: KeepRequest): void {
  if (addressRequest.kind !== "given" || isSameAddress(addressRequest.address, place.address)) return;
  throw otherThanKept(`address ${describeGiven(addressRequest)}`, place, keep);
}

function requireOwnBlock({ view, request }: Search, place: KeptPlace, { title }: KeepRequest): void {
  const owner = affineNode(place.known.block);
  if (owner === request.node || !view.configuration().strictAffinity) return;
  const text = `"${formatAddress(place.address)}"`;
  const [state, remedy] =
    owner === undefined
      ? ["has no node", ""]
      : [`belongs to node ${quoted(owner)}`, `run it on node ${quoted(owner)}, or `];
  throw new PluginError(
    "address-taken",
    `Cannot assign kept address ${text} to ${title}: its block ${state} and strictAffinity is on`,
    { details: `${remedy}give the address up: ${releaseCommand(place)}` },
  );
}

/** Who may make pods could otherwise keep all addresses of a pool, under ever new names. */
export function requireAllowedTime(view: View, { seconds = 0, limited }: KeepRequest): void {
  if (limited === undefined) return;
  const { longestKeepFor = "" } = view.configuration();
  const longest = isDuration(longestKeepFor) ? longestKeepFor : USUAL_LONGEST_KEEP_FOR;
  const most = wholeSecondsOf(longest);
  if (most === 0 || (seconds > 0 && seconds <= most)) return;
  const state = seconds === 0 ? "it is without limit" : `it is longer than "${longest}"`;
  throw new PluginError(
    "annotation-invalid",
    `Cannot use ${limited.place}: ${quoted(limited.text)}: ${state}, and the longest that is allowed is "longestKeepFor" of the IPAMConfiguration, "${longest}"`,
    {
      details: `write "${longest}" or less; an administrator may raise it: ${identity.adminTool} ipam configure --longest-keep-for DURATION. Pods of a StatefulSet and of virtual machines have no limit`,
    },
  );
}

/** An administrator's word counts more than that of the pod's author. */
export function requireKeepingAllowed(pool: Pool | undefined, { when, title }: KeepRequest): void {
  if (when !== "always" || pool?.forbidsKeeping !== true) return;
  throw new PluginError(
    "annotation-invalid",
    `Cannot keep the addresses of ${title}: pool ${quoted(pool.name)} forbids it ("keepAddresses" is false)`,
    {
      details: `remove the annotation "${identity.annotationPrefix}keepAddresses" of the pod, or of its namespace, or request a pool that allows it`,
    },
  );
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

/** `requested`: what the kept address is not. */
function otherThanKept(requested: string, place: KeptPlace, { title }: KeepRequest): PluginError {
  return new PluginError(
    "address-taken",
    `Cannot assign ${requested}: "${formatAddress(place.address)}" is kept for ${title}`,
    { details: `request that address, or give it up: ${releaseCommand(place)}` },
  );
}

function releaseCommand({ address, kept: { namespace, pod } }: KeptPlace): string {
  const what =
    namespace === undefined || pod === undefined ? `--ip ${formatAddress(address)}` : `--pod ${namespace}/${pod}`;
  return `${identity.adminTool} ipam release ${what}`;
}
