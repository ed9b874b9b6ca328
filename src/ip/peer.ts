/** Who is counted as one client by a server that limits what each may have. */
import { parseAddress } from "./address.ts";

/**
 * "" on the host itself, where any user has any address of loopback, and if the address is unknown. A pod or another host has one
 * IPv4 address, and a whole network of IPv6 addresses.
 */
export function peerOf(remoteAddress = ""): string {
  const text = remoteAddress.replace(/^::ffff:(?=\d+\.)/, "");
  const address = parseAddress(text);
  if (address === undefined || text === "::1" || text.startsWith("127.")) return "";
  return address.family === 4 ? text : `network ${address.value >> 64n}`;
}
