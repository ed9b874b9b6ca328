/**
 * Gives back what an owner holds: every address of the handle, or of one
 * interface of it. Nothing held is success. A handle that names blocks which
 * know nothing of it, left by a crash, goes too.
 */
import type { Decision, Wanted } from "../../datastore/datastore.ts";
import { type Address, isSameAddress, parseAddress } from "../../ip/address.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import { CONTAINER_ATTRIBUTE, isKeptInUse, isWaiting, KEPT_ATTRIBUTE } from "../../model/kept-address.ts";
import {
  addressAt,
  attributesOf,
  handlesOf,
  type Owner,
  ordinalIn,
  ordinalsOf,
  type ReleaseManner,
  releaseOrdinals,
} from "../block.ts";
import type { Facts } from "../facts.ts";
import { changesToGive } from "../handle.ts";
import type { KeptUse, ReleaseHandleRequest } from "../request.ts";
import { type KnownBlock, View } from "../view.ts";
import { changeAfterRelease } from "./block-after-release.ts";
import { possibleBlocksOf } from "./decide-addresses.ts";

export interface ReleaseOutcome {
  readonly released: readonly Address[];
  /** The blocks as they are after the commit. */
  readonly blocks: readonly IPAMBlock[];
}

export function decideReleaseHandle(owner: ReleaseHandleRequest, facts: Facts, now: Date): Decision<ReleaseOutcome> {
  const view = new View(facts, owner.node);
  const { kept } = owner;
  const ofKept = kept?.forGood === undefined || kept.handle === undefined ? [] : [kept.handle];
  const handles = [...handlesOf(owner), ...ofKept];
  const unread = handles
    .flatMap((handle) => view.handleBlocks(handle))
    .filter((cidr) => view.block(cidr).kind === "unknown");
  if (unread.length > 0) return { kind: "read", wanted: unread.map((cidr) => view.wantedBlock(cidr)) };

  const leaving = addressesToRelease(view, owner);
  const further = unreadKept(view, owner, leaving);
  if (further.length > 0) return { kind: "read", wanted: further };
  const ending = leaving.flatMap(({ known, ordinals }) =>
    ordinals.filter((each) => isKeptInUse(attributesOf(known.block, each))).map((each) => addressAt(known.block, each)),
  );
  if (ending.length > 0) kept?.ending?.(ending.filter((address) => !isForGood(address, owner)));
  const blocks = leaving.map((each) => released(each, owner, now));
  return {
    kind: "commit",
    // The blocks first: a store that stops half way leaves a handle that leads back to what is left.
    changes: [
      ...leaving.map(({ known }, index) => changeAfterRelease(blocks[index] ?? known.block, known.revision)),
      ...changesToGive(view, handles, blocks),
    ],
    outcome: {
      released: leaving.flatMap(({ known, ordinals }) => ordinals.map((ordinal) => addressAt(known.block, ordinal))),
      blocks,
    },
  };
}

/** Addresses that are kept: their own handle leads to them, or the runtime's result; read unless all of that was found. */
function unreadKept(
  view: View,
  { kept, likely = [] }: ReleaseHandleRequest,
  leaving: readonly Leaving[],
): readonly Wanted[] {
  if (kept === undefined) return [];
  const found = leaving.flatMap(({ known: { block }, ordinals }) => ordinals.map((each) => ({ block, ordinal: each })));
  const [use] = found.filter(({ block, ordinal }) => isKeptInUse(attributesOf(block, ordinal)));
  if (use === undefined && found.length > 0) return [];
  const held = found.map(({ block, ordinal }) => addressAt(block, ordinal));
  const results = likely.flatMap((text) => parseAddress(text) ?? []);
  const isComplete = results.length > 0 && results.every((each) => held.some((other) => isSameAddress(other, each)));
  if (isComplete) return [];
  const handle = use === undefined ? kept.handle : attributesOf(use.block, use.ordinal)?.handleId;
  const handles = handle === undefined ? [] : [handle];
  const unread = view.unreadHandles(handles);
  const isInKnown = (address: Address) =>
    view.knownBlocks(address.family).some(({ block }) => ordinalIn(block, address) !== undefined);
  const elsewhere = unread.length > 0 || handle === undefined ? results.filter((each) => !isInKnown(each)) : [];
  // The handle of a virtual machine does not follow from the call: the pools, and the size of their blocks, are not known.
  const around = elsewhere.flatMap(possibleBlocksOf);
  const blocks = [...handles.flatMap((each) => view.handleBlocks(each)), ...around];
  return [
    ...unread,
    ...blocks.filter((cidr) => view.block(cidr).kind === "unknown").map((cidr) => view.wantedBlock(cidr)),
  ];
}

function isForGood(address: Address, { how, kept }: ReleaseHandleRequest): boolean {
  return how === "for good" || (kept?.forGood?.some((each) => isSameAddress(each, address)) ?? false);
}

function released({ known: { block }, ordinals }: Leaving, owner: ReleaseHandleRequest, now: Date): IPAMBlock {
  const [forGood, others] = [true, false].map((isWanted) =>
    ordinals.filter((each) => isForGood(addressAt(block, each), owner) === isWanted),
  );
  return releaseOrdinals(releaseOrdinals(block, others ?? [], now), forGood ?? [], now, "for good");
}

type HolderOfKept = Owner & Pick<ReleaseHandleRequest, "kept">;

/** With those that are kept, and that its container uses. */
export function ordinalsHeldBy(block: IPAMBlock, owner: HolderOfKept): readonly number[] {
  const { kept } = owner;
  const ordinals = ordinalsOf(block, owner);
  if (kept === undefined || !block.attributes.some(({ secondary }) => isUsedBy(secondary, kept))) return ordinals;
  const isOfOwner = (ordinal: number) => {
    const attribute = attributesOf(block, ordinal);
    if (attribute?.handleId === undefined || !isUsedBy(attribute.secondary, kept)) return false;
    // As its own: of the same network and interface, and on this node, or known to be its own.
    return ordinalsOf(block, { ...owner, handle: attribute.handleId }).includes(ordinal);
  };
  return [...new Set([...ordinals, ...block.allocations.keys().filter(isOfOwner)])];
}

function isUsedBy(secondary: Readonly<Record<string, string>>, { containerId }: KeptUse): boolean {
  return secondary[KEPT_ATTRIBUTE] !== undefined && secondary[CONTAINER_ATTRIBUTE] === containerId;
}

interface Leaving {
  readonly known: KnownBlock;
  readonly ordinals: readonly number[];
}

function addressesToRelease(view: View, owner: ReleaseHandleRequest): readonly Leaving[] {
  const own = addressesOf(view, owner, owner.how);
  if (own.length > 0 || owner.ifNoneOnNode !== "release those of other nodes") return own;
  const { node: _, ...onAnyNode } = owner;
  return addressesOf(view, onAnyNode, owner.how);
}

/** What waits is released already, unless it is for good. */
function addressesOf(view: View, owner: HolderOfKept, how: ReleaseManner | undefined): readonly Leaving[] {
  const isHeld = ({ block }: KnownBlock, ordinal: number) =>
    how === "for good" || !isWaiting(attributesOf(block, ordinal));
  return [...view.knownBlocks()]
    .map((known) => ({ known, ordinals: ordinalsHeldBy(known.block, owner).filter((each) => isHeld(known, each)) }))
    .filter(({ ordinals }) => ordinals.length > 0);
}
