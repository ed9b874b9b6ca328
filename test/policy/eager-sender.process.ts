/**
 * Sends datagrams to an address and port as soon as there is a route to it, as fast as it can, and prints how many were
 * sent in the time after the first one: `bun eager-sender.process.ts ADDRESS PORT MILLISECONDS`.
 */
import { addressBytes, parseAddress } from "../../src/ip/address.ts";
import * as libc from "../../src/linux/libc.ts";

const [text = "", port = "0", milliseconds = "0"] = process.argv.slice(2);
const parsed = parseAddress(text);
if (parsed === undefined) throw new Error(`not an address: ${text}`);
const number = Number(port);
const target =
  parsed.family === 4
    ? Uint8Array.of(2, 0, number >> 8, number & 255, ...addressBytes(parsed), ...new Uint8Array(8))
    : Uint8Array.of(10, 0, number >> 8, number & 255, 0, 0, 0, 0, ...addressBytes(parsed), 0, 0, 0, 0);
const datagram = new Uint8Array([33]);
const socket = libc.socket(parsed.family === 4 ? 2 : 10, 2, 0);
console.log("ready");
while (libc.connect(socket, target, target.length) !== 0);
const end = performance.now() + Number(milliseconds);
let sent = 0;
while (performance.now() < end) if (libc.sendto(socket, datagram, 1, 0) === 1) sent++;
console.log(sent);
