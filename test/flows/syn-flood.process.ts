/**
 * Scans ports of an address: TCP packets that would begin connections, each another one, at a rate, by a raw socket, many in one
 * system call. Prints `ready`, and in the end how many it has sent.
 *
 *   bun syn-flood.process.ts FROM TO PER_SECOND MILLISECONDS FIRST_PORT PORTS [FIRST_SOURCE_PORT]
 */
import { dlopen, ptr } from "bun:ffi";
import { addressBytes, parseAddress } from "../../src/ip/address.ts";
import * as libc from "../../src/linux/libc.ts";

const { sendmmsg } = dlopen("libc.so.6", { sendmmsg: { args: ["i32", "ptr", "u32", "i32"], returns: "i32" } }).symbols;

const AF_INET = 2;
const SOCK_RAW = 3;
const TCP = 6;
const HEADER = 20;
const SYN = 2;
const WINDOW = 64_240;
const BATCH = 64;
/** `struct mmsghdr` and `struct iovec` of 64-bit machines. */
const MESSAGE_BYTES = 64;
const VECTOR_BYTES = 16;
const AT = { name: 0, nameLength: 8, vectors: 16, vectorCount: 24 } as const;
const SOURCE_PORTS = 40_000;
const STEP_MILLISECONDS = 5;

const [from = "", to = "", ...numbers] = process.argv.slice(2);
const [perSecond = 0, milliseconds = 0, firstPort = 1, ports = 1, firstSourcePort = 20_000] = numbers.map(Number);

const socket = libc.socket(AF_INET, SOCK_RAW, TCP);
const buffer = Int32Array.of(8 * 1024 * 1024);
libc.setsockopt(socket, 1, 32, buffer, 4);
const target = Uint8Array.of(AF_INET, 0, 0, 0, ...bytesOf(to), ...new Uint8Array(8));
const headers = new Uint8Array(BATCH * HEADER);
const headerView = new DataView(headers.buffer);
const vectors = new DataView(new ArrayBuffer(BATCH * VECTOR_BYTES));
const messages = new Uint8Array(BATCH * MESSAGE_BYTES);
const messageView = new DataView(messages.buffer);
for (let index = 0; index < BATCH; index++) {
  const header = index * HEADER;
  headerView.setUint8(header + 12, (HEADER / 4) << 4);
  headerView.setUint8(header + 13, SYN);
  headerView.setUint16(header + 14, WINDOW);
  vectors.setBigUint64(index * VECTOR_BYTES, BigInt(ptr(headers) + header), true);
  vectors.setBigUint64(index * VECTOR_BYTES + 8, BigInt(HEADER), true);
  const message = index * MESSAGE_BYTES;
  messageView.setBigUint64(message + AT.name, BigInt(ptr(target)), true);
  messageView.setUint32(message + AT.nameLength, target.length, true);
  messageView.setBigUint64(message + AT.vectors, BigInt(ptr(vectors) + index * VECTOR_BYTES), true);
  messageView.setBigUint64(message + AT.vectorCount, 1n, true);
}
/** Of the addresses, the protocol and the length, and of what is the same in each header. */
const constantSum = sumOf(bytesOf(from)) + sumOf(bytesOf(to)) + TCP + HEADER + (((HEADER / 4) << 12) | SYN) + WINDOW;

let next = 0;
let sent = 0;
console.log("ready");
const began = performance.now();
for (let now = 0; now < milliseconds; now = performance.now() - began) {
  const due = Math.floor((Math.min(now + STEP_MILLISECONDS, milliseconds) * perSecond) / 1_000);
  while (sent < due) send(Math.min(BATCH, due - sent));
  Bun.sleepSync(Math.max(1, now + STEP_MILLISECONDS - (performance.now() - began)));
}
console.log(`${sent} in ${Math.round(performance.now() - began)} ms`);

function send(count: number): void {
  for (let index = 0; index < count; index++, next++) {
    const sourcePort = firstSourcePort + (Math.floor(next / ports) % SOURCE_PORTS);
    const port = firstPort + (next % ports);
    const header = index * HEADER;
    headerView.setUint16(header, sourcePort);
    headerView.setUint16(header + 2, port);
    let sum = constantSum + sourcePort + port;
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
    headerView.setUint16(header + 16, ~sum & 0xffff);
  }
  const done = sendmmsg(socket, ptr(messages), count, 0);
  if (done < 0) throw new Error(`cannot send: error ${libc.lastErrno()}`);
  // What was not sent is tried again as the next ones.
  next -= count - done;
  sent += done;
}

function bytesOf(text: string): Uint8Array {
  const address = parseAddress(text);
  if (address?.family !== 4) throw new Error(`not an IPv4 address: ${text}`);
  return addressBytes(address);
}

function sumOf(bytes: Uint8Array): number {
  return (((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0)) + (((bytes[2] ?? 0) << 8) | (bytes[3] ?? 0));
}
