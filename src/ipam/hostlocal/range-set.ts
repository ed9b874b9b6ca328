/**
 * The addresses of a network: sets of ranges; a container gets one address from each set.
 *
 *   set 0:  10.1.2.0/24 from .10 to .254, gateway .1  |  10.2.2.0/24 …
 *   set 1:  2001:db8:1::/64 …
 *
 * Pure: the config format is in `decode-ranges.ts`, the reservations are in `store.ts`.
 */
import { type Address, addressBits, type Family, formatAddress, isSameAddress } from "../../ip/address.ts";
import { lastAddress, type Prefix } from "../../ip/prefix.ts";
import { type AddressRange, formatRange, rangeContains, rangesOverlap } from "../../ip/range.ts";

export interface SubnetRange {
  readonly subnet: Prefix;
  /** Both ends included. */
  readonly addresses: AddressRange;
  /** Never assigned, whether it is in the range or not. */
  readonly gateway: Address;
}

/** Ranges of one family, without overlap; addresses are assigned from them in order. */
export type RangeSet = readonly SubnetRange[];

/** An address that may be assigned, and the range it comes from. */
export interface Candidate {
  readonly address: Address;
  readonly range: SubnetRange;
}

/** Room for the network address, the gateway, one container and the broadcast address. */
const SMALLEST_HOST_BITS = 2;

export function isLargeEnough(subnet: Prefix): boolean {
  return subnet.length <= addressBits(subnet.network.family) - SMALLEST_HOST_BITS;
}

/** The first address after the network address: the default for the gateway and for the start of a range. */
export function firstHost({ network }: Prefix): Address {
  return { family: network.family, value: network.value + 1n };
}

/** The last address that is not a broadcast address; IPv6 has no broadcast address. */
export function lastHost(subnet: Prefix): Address {
  const { family, value } = lastAddress(subnet);
  return { family, value: family === 4 ? value - 1n : value };
}

export function familyOf(set: RangeSet): Family | undefined {
  return set[0]?.subnet.network.family;
}

/** The range of the set that contains the address, if any. */
export function rangeContaining(set: RangeSet, address: Address): SubnetRange | undefined {
  return set.find(({ addresses }) => rangeContains(addresses, address));
}

/** The first two ranges, of one set or of two, that overlap. */
export function firstOverlap(sets: readonly RangeSet[]): readonly [SubnetRange, SubnetRange] | undefined {
  const ranges = sets.flat();
  for (const [index, left] of ranges.entries()) {
    const right = ranges.slice(index + 1).find((other) => rangesOverlap(left.addresses, other.addresses));
    if (right !== undefined) return [left, right];
  }
  return undefined;
}

/**
 * Every address of the set once except gateways, beginning after the one assigned last,
 * so that a freed address stays unused as long as possible.
 */
export function* candidates(set: RangeSet, lastAssigned: Address | undefined): Generator<Candidate> {
  const start =
    lastAssigned === undefined ? -1 : set.findIndex((range) => rangeContaining([range], lastAssigned) !== undefined);
  if (lastAssigned === undefined || start < 0) {
    for (const range of set) yield* hosts(range, range.addresses.first.value, range.addresses.last.value);
    return;
  }
  for (let turn = 0; turn <= set.length; turn += 1) {
    const range = set[(start + turn) % set.length];
    if (range === undefined) return;
    const { first, last } = range.addresses;
    const from = turn === 0 ? lastAssigned.value + 1n : first.value;
    yield* hosts(range, from, turn === set.length ? lastAssigned.value : last.value);
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

/** The address as the container gets it: with the prefix length of its subnet. */
export function formatCandidate({ address, range }: Candidate): string {
  return `${formatAddress(address)}/${range.subnet.length}`;
}
