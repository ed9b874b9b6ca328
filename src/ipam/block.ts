/**
 * Block arithmetic: which address of a block is given to whom.
 *
 *   allocations   [0, -, 1, -]              ordinal -> index into attributes
 *   unallocated   [3, 1]                    a queue: taken from the front, given back at the end
 *   attributes    [{handle a}, {handle b}]  one entry for all allocations that agree in it
 *   released      {1: {at, namespace}}      ordinals that were given back not long ago: they rest (rest.ts)
 *
 * An address that was given back is thus the last to be given again. Every
 * function takes a block and answers a new one; nothing here reads the clock,
 * waits or talks to a datastore.
 */

import { type Address, formatAddress } from "../ip/address.ts";
import { blockSize, nthAddress, ordinalOf } from "../ip/block.ts";
import { type Prefix, prefixContains } from "../ip/prefix.ts";
import {
  type BlockAttribute,
  INTERFACE_ATTRIBUTE,
  type IPAMBlock,
  NETWORK_ATTRIBUTE,
  NODE_ATTRIBUTE,
} from "../model/ipam-block.ts";
import { isKeptInUse, isWaiting, waitingAttribute } from "../model/kept-address.ts";
import type { FormerHandle } from "./former-handle.ts";
import { cooldownOf, releaseBy, restLeftIn, withoutRested, withReleases } from "./rest.ts";

/** Who an allocation belongs to. Two interfaces of one container share a handle and differ in `interface`. */
export interface Owner {
  readonly handle: string;
  /** Tells `a.b.c` of network `a` from that of network `a.b`. */
  readonly network?: string;
  readonly interface?: string;
  /** Allocations recorded for another node are not its own: container IDs are unique on one host only. Absent: every node. */
  readonly node?: string;
  /** Addresses known to be its own whatever node is recorded: the host may have been renamed. */
  readonly onAnyNode?: readonly string[];
  /** What else may be its own. Only for releasing and reading: nothing is assigned under it. */
  readonly former?: FormerHandle;
}

/** A block and the ordinal that was just assigned in it. */
export interface Taken {
  readonly block: IPAMBlock;
  readonly ordinal: number;
  /** When it was released, in seconds since 1970, if it has not rested yet. */
  readonly restingSince?: number;
}

/** An empty block. Its sequence numbers begin at `sequenceNumber`, the time in nanoseconds, so that no block ever reuses one. */
export function emptyBlock(cidr: Prefix, affinity: string | undefined, sequenceNumber: bigint): IPAMBlock {
  const size = blockSize(cidr);
  return {
    cidr,
    ...(affinity === undefined ? {} : { affinity }),
    allocations: new Array<number | undefined>(size).fill(undefined),
    unallocated: Array.from({ length: size }, (_, ordinal) => ordinal),
    attributes: [],
    sequenceNumber,
    sequenceNumberForAllocation: {},
    deleted: false,
  };
}

/** Which free addresses may be taken. */
export interface Usable {
  readonly now: Date;
  readonly reserved?: readonly Prefix[];
  readonly isUnusable?: (address: Address) => boolean;
}

/**
 * Takes, of the addresses that have rested, the one that has been free the longest; if all rest, the one that has rested
 * the longest, unless they rest by a setting. `undefined` when every free one is reserved, or rests so. One that a damaged
 * block calls both free and held is held.
 */
export function assignNext(block: IPAMBlock, attributes: BlockAttribute, usable: Usable): Taken | undefined {
  const { now, reserved = [], isUnusable = () => false } = usable;
  const mayCutShort = cooldownOf(block.cooldownSeconds) === 0;
  let longest: { readonly ordinal: number; readonly restingSince: number } | undefined;
  for (const ordinal of block.unallocated) {
    if (isAllocated(block, ordinal) || isReserved(block, ordinal, reserved)) continue;
    const restingSince = restLeftIn(block, ordinal, now) > 0 ? block.released?.[ordinal]?.at : undefined;
    if (restingSince !== undefined && !mayCutShort) continue;
    if (restingSince !== undefined && longest !== undefined && longest.restingSince <= restingSince) continue;
    if (isUnusable(addressAt(block, ordinal))) continue;
    if (restingSince === undefined) return { block: withoutRested(take(block, ordinal, attributes), now), ordinal };
    longest = { ordinal, restingSince };
  }
  return longest && { block: withoutRested(take(block, longest.ordinal, attributes), now), ...longest };
}

/** Takes this very address; `undefined` when it is not free. */
export function assignOrdinal(block: IPAMBlock, ordinal: number, attributes: BlockAttribute): Taken | undefined {
  const isFree = block.unallocated.includes(ordinal) && !isAllocated(block, ordinal);
  return isFree ? { block: take(block, ordinal, attributes), ordinal } : undefined;
}

/**
 * Gives back these ordinals, which rest from now on; those that are free already stay as they are. So do addresses that are
 * kept for an identity: if a container uses one, its use ends, and it waits. Only "for good" frees them too.
 */
export function releaseOrdinals(
  block: IPAMBlock,
  ordinals: readonly number[],
  now: Date,
  how?: ReleaseManner,
): IPAMBlock {
  if (how === "for good") return freeOrdinals(block, ordinals, now);
  const isOf = (is: (attribute: BlockAttribute | undefined) => boolean) => (ordinal: number) =>
    is(attributesOf(block, ordinal));
  const ended = endUse(block, ordinals.filter(isOf(isKeptInUse)), now);
  return freeOrdinals(ended, ordinals.filter(isOf((each) => !isKeptInUse(each) && !isWaiting(each))), now);
}

/** What becomes of addresses that are kept for an identity; absent: they wait for it. */
export type ReleaseManner = "for good";

/** The addresses stay allocated to their handle, without a container. */
function endUse(block: IPAMBlock, ordinals: readonly number[], now: Date): IPAMBlock {
  let ended = block;
  for (const ordinal of new Set(ordinals)) {
    const attributes = attributesOf(ended, ordinal);
    if (attributes !== undefined) ended = allocate(ended, ordinal, waitingAttribute(attributes, now));
  }
  return ended === block ? block : { ...ended, ...reindexAttributes(ended.allocations, ended.attributes) };
}

function freeOrdinals(block: IPAMBlock, ordinals: readonly number[], now: Date): IPAMBlock {
  const leaving = new Set(ordinals.filter((ordinal) => isAllocated(block, ordinal)));
  if (leaving.size === 0) return block;

  const allocations = block.allocations.map((index, ordinal) => (leaving.has(ordinal) ? undefined : index));
  const sequenceNumbers = Object.entries(block.sequenceNumberForAllocation).filter(
    ([ordinal]) => !leaving.has(Number(ordinal)),
  );
  const { released = {} } = withoutRested(block, now);
  const releases = [...leaving].map((ordinal) => [`${ordinal}`, releaseBy(attributesOf(block, ordinal), now)] as const);
  return withReleases(
    {
      ...block,
      ...reindexAttributes(allocations, block.attributes),
      unallocated: [...block.unallocated, ...leaving],
      sequenceNumber: block.sequenceNumber + 1n,
      sequenceNumberForAllocation: Object.fromEntries(sequenceNumbers),
    },
    [...Object.entries(released), ...releases],
  );
}

/** The same block, changed: whoever decided from what it was before loses its race. */
export function touched(block: IPAMBlock): IPAMBlock {
  return { ...block, sequenceNumber: block.sequenceNumber + 1n };
}

/** The ordinals that this owner holds. An owner without an interface means every interface of the handle. */
export function ordinalsOf(block: IPAMBlock, owner: Owner): readonly number[] {
  // A loop: it looks at every ordinal of a block on every ADD and DEL, in a process that has just begun.
  const ordinals: number[] = [];
  for (let ordinal = 0; ordinal < block.allocations.length; ordinal++) {
    const attributes = attributesOf(block, ordinal);
    if (attributes && belongsTo(attributes, owner) && isOnNode(block, ordinal, owner)) ordinals.push(ordinal);
  }
  return ordinals;
}

/** Every handle under which the owner may hold addresses. */
export function handlesOf({ handle, former }: Owner): readonly string[] {
  return former === undefined ? [handle] : [handle, former.handle];
}

export function attributesOf(block: IPAMBlock, ordinal: number): BlockAttribute | undefined {
  const index = block.allocations[ordinal];
  return index === undefined ? undefined : block.attributes[index];
}

export function isAllocated(block: IPAMBlock, ordinal: number): boolean {
  return block.allocations[ordinal] !== undefined;
}

export function isEmpty(block: IPAMBlock): boolean {
  return block.unallocated.length === block.allocations.length;
}

export function hasAddressesOf(block: IPAMBlock, node: string): boolean {
  return block.attributes.some(({ secondary }) => secondary[NODE_ATTRIBUTE] === node);
}

export function addressAt(block: IPAMBlock, ordinal: number): Address {
  const address = nthAddress(block.cidr, ordinal);
  if (!address) throw new RangeError(`ordinal ${ordinal} lies outside a block of ${block.allocations.length}`);
  return address;
}

export function ordinalIn(block: IPAMBlock, address: Address): number | undefined {
  return ordinalOf(block.cidr, address);
}

function isReserved(block: IPAMBlock, ordinal: number, reserved: readonly Prefix[]): boolean {
  if (reserved.length === 0) return false;
  const address = nthAddress(block.cidr, ordinal);
  return address !== undefined && reserved.some((prefix) => prefixContains(prefix, address));
}

function take(block: IPAMBlock, ordinal: number, attributes: BlockAttribute): IPAMBlock {
  const taken = {
    ...allocate(block, ordinal, attributes),
    unallocated: block.unallocated.filter((each) => each !== ordinal),
  };
  const releases = Object.entries(block.released ?? {}).filter(([each]) => Number(each) !== ordinal);
  return block.released === undefined ? taken : withReleases(taken, releases);
}

/** With a sequence number of its own, so that nobody takes it for the allocation that it was before. */
function allocate(block: IPAMBlock, ordinal: number, attributes: BlockAttribute): IPAMBlock {
  const known = block.attributes.findIndex((each) => isSameAttributes(each, attributes));
  const index = known < 0 ? block.attributes.length : known;
  return {
    ...block,
    allocations: block.allocations.map((each, position) => (position === ordinal ? index : each)),
    attributes: known < 0 ? [...block.attributes, attributes] : block.attributes,
    sequenceNumber: block.sequenceNumber + 1n,
    sequenceNumberForAllocation: { ...block.sequenceNumberForAllocation, [ordinal]: block.sequenceNumber },
  };
}

/** Drops the attributes nobody refers to and renumbers the rest in their order. */
function reindexAttributes(
  allocations: readonly (number | undefined)[],
  attributes: readonly BlockAttribute[],
): Pick<IPAMBlock, "allocations" | "attributes"> {
  const used = new Set(allocations);
  const renumbered = new Map<number, number>();
  const kept = attributes.filter((_, index) => {
    if (!used.has(index)) return false;
    renumbered.set(index, renumbered.size);
    return true;
  });
  return {
    allocations: allocations.map((index) => (index === undefined ? undefined : renumbered.get(index))),
    attributes: kept,
  };
}

function belongsTo(attributes: BlockAttribute, owner: Owner): boolean {
  const { handleId, secondary } = attributes;
  if (handleId !== owner.handle) return owner.former !== undefined && isHeldUnder(attributes, owner.former);
  return (
    isNoOther(secondary[INTERFACE_ATTRIBUTE], owner.interface) && isNoOther(secondary[NETWORK_ATTRIBUTE], owner.network)
  );
}

function isOnNode(block: IPAMBlock, ordinal: number, { node, onAnyNode }: Owner): boolean {
  const recorded = attributesOf(block, ordinal)?.secondary[NODE_ATTRIBUTE];
  if (isNoOther(recorded, node)) return true;
  return onAnyNode?.includes(formatAddress(addressAt(block, ordinal))) ?? false;
}

/** The container ID alone does not say whose an address is: nothing counts that could be another's. Tunnels have a type. */
function isHeldUnder({ handleId, secondary }: BlockAttribute, { handle, node }: FormerHandle): boolean {
  const isContainers = secondary[NETWORK_ATTRIBUTE] === undefined && secondary["type"] === undefined;
  return handleId === handle && isContainers && isNoOther(secondary[NODE_ATTRIBUTE], node);
}

/** What neither side says cannot differ. */
function isNoOther(held: string | undefined, asked: string | undefined): boolean {
  return held === undefined || asked === undefined || held === asked;
}

function isSameAttributes(left: BlockAttribute, right: BlockAttribute): boolean {
  if (left.handleId !== right.handleId) return false;
  const names = Object.keys(left.secondary);
  return (
    names.length === Object.keys(right.secondary).length &&
    names.every((name) => left.secondary[name] === right.secondary[name])
  );
}
