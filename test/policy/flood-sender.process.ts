/**
 * Sends datagrams to the ports of an address in turn, as fast as it can, and prints how many it sent to each:
 * `bun flood-sender.process.ts ADDRESS MILLISECONDS PORT...`. Nobody replies, so for connection tracking each is new.
 */
import { addressBytes, parseAddress } from "../../src/ip/address.ts";
import * as libc from "../../src/linux/libc.ts";

const [text = "", milliseconds = "0", ...ports] = process.argv.slice(2);
const parsed = parseAddress(text);
if (parsed?.family !== 4) throw new Error(`not an IPv4 address: ${text}`);
const sockets = ports.map(Number).map((port) => {
  const socket = libc.socket(2, 2, 0);
  const target = Uint8Array.of(2, 0, port >> 8, port & 255, ...addressBytes(parsed), ...new Uint8Array(8));
  if (libc.connect(socket, target, target.length) !== 0) throw new Error(`cannot connect to port ${port}`);
  return socket;
});
const datagram = new Uint8Array([33]);
const sent = sockets.map(() => 0);
console.log("ready");
const end = performance.now() + Number(milliseconds);
while (performance.now() < end) {
  for (const [index, socket] of sockets.entries()) {
    if (libc.sendto(socket, datagram, 1, 0) === 1) sent[index] = (sent[index] ?? 0) + 1;
  }
}
console.log(sent.join(" "));
