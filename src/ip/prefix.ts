/**
 * Networks in CIDR notation.
 *
 * A `Prefix` never has host bits; an `InterfaceAddress` (`10.0.0.5/26`) is an
 * address together with the prefix length of its network.
 */
import { type Address, addressBits, compareAddresses, type Family, formatAddress, parseAddress } from "./address.ts";

export interface Prefix {
  readonly network: Address;
  readonly length: number;
}

export interface InterfaceAddress {
  readonly address: Address;
  readonly length: number;
}

/** Reads `10.0.0.0/26`; text with host bits is not a prefix (see `parseInterfaceAddress`, `hasHostBits`). */
export function parsePrefix(text: string): Prefix | undefined {
  const read = parseInterfaceAddress(text);
  if (!read || hasHostBits(read)) return undefined;
  return { network: read.address, length: read.length };
}

/** Reads `10.0.0.5/26`: any address of a network with the network's length. */
export function parseInterfaceAddress(text: string): InterfaceAddress | undefined {
  const slash = text.indexOf("/");
  if (slash < 0) return undefined;

  const address = parseAddress(text.slice(0, slash));
  const length = parseLength(text.slice(slash + 1));
  if (!address || length === undefined || length > addressBits(address.family)) return undefined;
  return { address, length };
}

/** A whole number without sign and leading zeros. */
function parseLength(text: string): number | undefined {
  const length = Number(text);
  return Number.isInteger(length) && length >= 0 && String(length) === text ? length : undefined;
}

/** Reads a prefix, or a single address as the prefix that contains only it. */
export function parsePrefixOrAddress(text: string): Prefix | undefined {
  const address = parseAddress(text);
  return address ? singlePrefix(address) : parsePrefix(text);
}

export function formatPrefix(prefix: Prefix): string {
  return `${formatAddress(prefix.network)}/${prefix.length}`;
}

export function formatInterfaceAddress({ address, length }: InterfaceAddress): string {
  return `${formatAddress(address)}/${length}`;
}

export function hasHostBits({ address, length }: InterfaceAddress): boolean {
  return (address.value & hostMask(address.family, length)) !== 0n;
}

/** The network of this length that contains the address. */
export function prefixAround(address: Address, length: number): Prefix {
  const { family, value } = address;
  const hostBits = BigInt(addressBits(family) - length);
  return { network: { family, value: (value >> hostBits) << hostBits }, length };
}

/** The prefix that contains only this address. */
export function singlePrefix(address: Address): Prefix {
  return { network: address, length: addressBits(address.family) };
}

export function lastAddress({ network, length }: Prefix): Address {
  return { family: network.family, value: network.value | hostMask(network.family, length) };
}

/** The two halves of a prefix; none for a single address. */
export function prefixHalves({ network, length }: Prefix): readonly Prefix[] {
  const { family, value } = network;
  if (length === addressBits(family)) return [];
  const half = 1n << BigInt(addressBits(family) - length - 1);
  return [value, value + half].map((start) => ({ network: { family, value: start }, length: length + 1 }));
}

/** The number of addresses in the prefix: up to 2^128, hence bigint. */
export function prefixSize({ network, length }: Prefix): bigint {
  return hostMask(network.family, length) + 1n;
}

export function prefixContains(prefix: Prefix, address: Address): boolean {
  const { network, length } = prefix;
  if (network.family !== address.family) return false;
  const hostBits = BigInt(addressBits(network.family) - length);
  return address.value >> hostBits === network.value >> hostBits;
}

/** Whether every address of `inner` is in `outer`. */
export function prefixCovers(outer: Prefix, inner: Prefix): boolean {
  return outer.length <= inner.length && prefixContains(outer, inner.network);
}

/** Prefixes never overlap partially: either one covers the other or they are disjoint. */
export function prefixesOverlap(left: Prefix, right: Prefix): boolean {
  return prefixCovers(left, right) || prefixCovers(right, left);
}

export function isSamePrefix(left: Prefix, right: Prefix): boolean {
  return comparePrefixes(left, right) === 0;
}

/** Orders by network, then by length, shortest first. */
export function comparePrefixes(left: Prefix, right: Prefix): number {
  return compareAddresses(left.network, right.network) || left.length - right.length;
}

/** The netmask as text: `255.255.255.192`. */
export function formatNetmask(family: Family, length: number): string {
  const all = hostMask(family, 0);
  return formatAddress({ family, value: all ^ hostMask(family, length) });
}

function hostMask(family: Family, length: number): bigint {
  return (1n << BigInt(addressBits(family) - length)) - 1n;
}
