/**
 * Ranges of addresses with both ends included: `10.0.0.5-10.0.0.20`.
 */
import { type Address, compareAddresses, formatAddress, parseAddress } from "./address.ts";
import { lastAddress, type Prefix } from "./prefix.ts";

export interface AddressRange {
  readonly first: Address;
  readonly last: Address;
}

/** Reads `first-last`; returns `undefined` if the ends are of two families or in the wrong order. */
export function parseRange(text: string): AddressRange | undefined {
  const [firstText, lastText, ...rest] = text.split("-");
  if (firstText === undefined || lastText === undefined || rest.length > 0) return undefined;

  const first = parseAddress(firstText.trim());
  const last = parseAddress(lastText.trim());
  return first && last ? rangeBetween(first, last) : undefined;
}

export function rangeBetween(first: Address, last: Address): AddressRange | undefined {
  if (first.family !== last.family || compareAddresses(first, last) > 0) return undefined;
  return { first, last };
}

export function rangeOfPrefix(prefix: Prefix): AddressRange {
  return { first: prefix.network, last: lastAddress(prefix) };
}

export function formatRange({ first, last }: AddressRange): string {
  return `${formatAddress(first)}-${formatAddress(last)}`;
}

export function rangeSize({ first, last }: AddressRange): bigint {
  return last.value - first.value + 1n;
}

export function rangeContains({ first, last }: AddressRange, address: Address): boolean {
  return address.family === first.family && address.value >= first.value && address.value <= last.value;
}

export function rangesOverlap(left: AddressRange, right: AddressRange): boolean {
  return rangeContains(left, right.first) || rangeContains(right, left.first);
}
