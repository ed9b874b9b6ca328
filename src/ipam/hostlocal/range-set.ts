/**
 * The addresses of a network: sets of ranges, one address out of each set.
 *
 *   set 0:  10.1.2.0/24 from .10 to .254, gateway .1  |  10.2.2.0/24 …
 *   set 1:  2001:db8:1::/64 …
 *
 * Pure: what a range means, not how it is written (`decode-ranges.ts`) nor who
 * holds what (`store.ts`).
 */
import { type Address, addressBits, type Family, formatAddress, isSameAddress } from "../../ip/address.ts";
import { lastAddress, type Prefix } from "../../ip/prefix.ts";
import { type AddressRange, formatRange, rangeContains, rangesOverlap } from "../../ip/range.ts";

export interface SubnetRange {
  readonly subnet: Prefix;
  /** Both ends included. */
  readonly addresses: AddressRange;
  /** Never given out, whether it lies in the range or not. */
  readonly gateway: Address;
}

/** Ranges of one family, without overlap; addresses are taken from them in turn. */
export type RangeSet = readonly SubnetRange[];

/** An address that may be given, and the range it comes from. */
export interface Candidate {
  readonly address: Address;
  readonly range: SubnetRange;
}

/** The network's own address, the gateway, one for a container, and the broadcast. */
const SMALLEST_HOST_BITS = 2;

export function isLargeEnough(subnet: Prefix): boolean {
  return subnet.length <= addressBits(subnet.network.family) - SMALLEST_HOST_BITS;
}

/** The first address after the network's own: the usual gateway, and where a range begins unless it says otherwise. */
export function firstHost({ network }: Prefix): Address {
  return { family: network.family, value: network.value + 1n };
}

/** The last address that is not a broadcast; IPv6 has none. */
export function lastHost(subnet: Prefix): Address {
  const { family, value } = lastAddress(subnet);
  return { family, value: family === 4 ? value - 1n : value };
}

export function familyOf(set: RangeSet): Family | undefined {
  return set[0]?.subnet.network.family;
}

/** The range of the set that holds the address, if any does. */
export function rangeHolding(set: RangeSet, address: Address): SubnetRange | undefined {
  return set.find(({ addresses }) => rangeContains(addresses, address));
}

/** The first two ranges of different sets, or of one set, that share addresses. */
export function firstOverlap(sets: readonly RangeSet[]): readonly [SubnetRange, SubnetRange] | undefined {
  const ranges = sets.flat();
  for (const [index, left] of ranges.entries()) {
    const right = ranges.slice(index + 1).find((other) => rangesOverlap(left.addresses, other.addresses));
    if (right !== undefined) return [left, right];
  }
  return undefined;
}

/**
 * Every address of the set once, beginning behind the one given last, so that
 * a freed address rests as long as it can. Gateways are left out.
 */
export function* candidates(set: RangeSet, lastGiven: Address | undefined): Generator<Candidate> {
  const start = lastGiven === undefined ? -1 : set.findIndex((range) => rangeHolding([range], lastGiven) !== undefined);
  if (lastGiven === undefined || start < 0) {
    for (const range of set) yield* hosts(range, range.addresses.first.value, range.addresses.last.value);
    return;
  }
  for (let turn = 0; turn <= set.length; turn += 1) {
    const range = set[(start + turn) % set.length];
    if (range === undefined) return;
    const { first, last } = range.addresses;
    const from = turn === 0 ? lastGiven.value + 1n : first.value;
    yield* hosts(range, from, turn === set.length ? lastGiven.value : last.value);
  }
}

function* hosts(range: SubnetRange, from: bigint, to: bigint): Generator<Candidate> {
  const { family } = range.subnet.network;
  for (let value = from; value <= to; value += 1n) {
    const address = { family, value };
    if (!isSameAddress(address, range.gateway)) yield { address, range };
  }
}

/** For messages: `10.1.2.1-10.1.2.254, 10.2.2.1-10.2.2.254`. */
export function formatSet(set: RangeSet): string {
  return set.map(({ addresses }) => formatRange(addresses)).join(", ");
}

/** The address as the container bears it: with the length of its subnet. */
export function formatCandidate({ address, range }: Candidate): string {
  return `${formatAddress(address)}/${range.subnet.length}`;
}
