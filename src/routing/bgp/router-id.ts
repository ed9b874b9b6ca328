import type { Address } from "../../ip/address.ts";

/** The first byte of addresses for hosts: 1 to 223. */
const FIRST_BYTES = 223;

/** BGP identifies routers by 32 bits, also if they have IPv6 addresses only: then they are derived from the name. */
export function routerId(node: string, ipv4: Address | undefined): Address {
  if (ipv4 !== undefined) return ipv4;
  const [first = 0, ...others] = new Bun.CryptoHasher("sha1").update(node).digest().subarray(0, 4);
  return { family: 4, value: BigInt(bytesToNumber([1 + (first % FIRST_BYTES), ...others])) };
}

function bytesToNumber(bytes: readonly number[]): number {
  return bytes.reduce((sum, byte) => sum * 256 + byte, 0);
}
