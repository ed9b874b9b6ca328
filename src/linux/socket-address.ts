/** Addresses and ports as socket calls take them. */
import { type Address, addressBytes, type Family } from "../ip/address.ts";

/** AF_INET and AF_INET6. */
export const DOMAIN: Readonly<Record<Family, number>> = { 4: 2, 6: 10 };

/** `struct sockaddr_in` or `sockaddr_in6`. */
export function socketAddress(address: Address, port: number): Uint8Array {
  const { family } = address;
  const bytes = new Uint8Array(family === 4 ? 16 : 28);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, DOMAIN[family], true);
  view.setUint16(2, port);
  bytes.set(addressBytes(address), family === 4 ? 4 : 8);
  return bytes;
}
