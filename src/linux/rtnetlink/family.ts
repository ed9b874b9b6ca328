/** Address families by the length of an address: 4 bytes or 16. */
export const AF_INET = 2;
export const AF_INET6 = 10;

export type AddressFamily = "ipv4" | "ipv6";

/** An address as its bytes in network order: 4 of them, or 16. */
export type AddressBytes = Uint8Array;

export function familyOf(address: AddressBytes): number {
  return address.length === 4 ? AF_INET : AF_INET6;
}

export function familyNumber(family: AddressFamily | undefined): number {
  if (family === undefined) return 0;
  return family === "ipv4" ? AF_INET : AF_INET6;
}

/** For messages alone: an IPv6 address is not shortened. */
export function describeAddress(address: AddressBytes): string {
  return address.length === 4 ? address.join(".") : (address.toHex().match(/.{4}/g) ?? []).join(":");
}
