/**
 * One IP address of either family, as a value.
 *
 * Parsing is strict: text that two programs could read differently (leading
 * zeros, octal, missing octets, zones) is refused. IPv6 is printed in the canonical
 * form of RFC 5952. Bad text returns `undefined`: the caller knows the field it came
 * from and reports it.
 */
import { formatIpv4, formatIpv6, parseIpv4, parseIpv6 } from "./text.ts";

export type Family = 4 | 6;

/** Bigint because an IPv6 address has 128 bits; measured in docs/decisions/addresses-as-bigint.md. */
export interface Address {
  readonly family: Family;
  readonly value: bigint;
}

const BITS = { 4: 32, 6: 128 } as const;
const LIMIT = { 4: 1n << 32n, 6: 1n << 128n } as const;
const MAPPED = 0xffffn;

/** Reads `10.0.0.1`, `fd00::1`, `::ffff:10.0.0.1` (which stays IPv6, see `unmapAddress`). */
export function parseAddress(text: string): Address | undefined {
  const ipv4 = parseIpv4(text);
  if (ipv4 !== undefined) return { family: 4, value: BigInt(ipv4) };

  const groups = parseIpv6(text);
  return groups === undefined ? undefined : { family: 6, value: valueOfGroups(groups) };
}

export function formatAddress({ family, value }: Address): string {
  return family === 4 ? formatIpv4(Number(value)) : formatIpv6(groupsOfValue(value));
}

/** The address with this number, or `undefined` if the family has no such address. */
export function addressOf(family: Family, value: bigint): Address | undefined {
  return value >= 0n && value < LIMIT[family] ? { family, value } : undefined;
}

/** The IPv4 address in an IPv4-mapped IPv6 address; any other address unchanged. */
export function unmapAddress(address: Address): Address {
  if (address.family === 4 || address.value >> 32n !== MAPPED) return address;
  return { family: 4, value: address.value & 0xffff_ffffn };
}

/** Orders IPv4 before IPv6, then by number. */
export function compareAddresses(left: Address, right: Address): number {
  if (left.family !== right.family) return left.family - right.family;
  if (left.value === right.value) return 0;
  return left.value < right.value ? -1 : 1;
}

export function isSameAddress(left: Address, right: Address): boolean {
  return left.family === right.family && left.value === right.value;
}

/** 32 or 128: the length of a prefix of one address. */
export function addressBits(family: Family): 32 | 128 {
  return BITS[family];
}

/** The address plus `offset`, or `undefined` if that is outside the family's addresses. */
export function stepAddress(address: Address, offset: bigint): Address | undefined {
  return addressOf(address.family, address.value + offset);
}

/** In network byte order: 4 or 16 bytes. */
export function addressBytes({ family, value }: Address): Uint8Array<ArrayBuffer> {
  if (family === 4) {
    const number = Number(value);
    return Uint8Array.of(number >>> 24, number >>> 16, number >>> 8, number);
  }
  const bytes = new Uint8Array(BITS[family] / 8);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, value >> 64n);
  view.setBigUint64(8, value);
  return bytes;
}

/** The length determines the family; `undefined` for any length other than 4 or 16. */
export function addressFromBytes(bytes: Uint8Array): Address | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length === 4) return { family: 4, value: BigInt(view.getUint32(0)) };
  if (bytes.length === 16) return { family: 6, value: (view.getBigUint64(0) << 64n) | view.getBigUint64(8) };
  return undefined;
}

function valueOfGroups(groups: readonly number[]): bigint {
  const word = (index: number) => BigInt((groups[index] ?? 0) * 0x1_0000 + (groups[index + 1] ?? 0));
  return (word(0) << 96n) | (word(2) << 64n) | (word(4) << 32n) | word(6);
}

function groupsOfValue(value: bigint): number[] {
  const groups: number[] = [];
  for (const shift of [96n, 64n, 32n, 0n]) {
    const word = Number((value >> shift) & 0xffff_ffffn);
    groups.push(word >>> 16, word & 0xffff);
  }
  return groups;
}
