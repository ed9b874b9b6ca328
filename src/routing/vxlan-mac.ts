import type { Family } from "../ip/address.ts";
import { formatMac } from "../ip/mac.ts";

/**
 * The MAC of the VXLAN device of a node. The same after every restart, so that other nodes need not learn another, and known
 * to every node, so that no other node can have it. Locally administered, of one interface.
 */
export function vxlanMac(node: string, family: Family): string {
  const text = family === 4 ? node : `v6 ${node}`;
  const hash = new Bun.CryptoHasher("sha1").update(text).digest();
  return formatMac(Uint8Array.of(0x66, ...hash.subarray(0, 5)));
}
