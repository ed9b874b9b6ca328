/** SCTP with raw sockets: the first packet of an association, for kernels without SCTP support. */
import * as libc from "../../src/linux/libc.ts";
import { closeNetns, openNetns, runInNetns } from "../../src/linux/netns.ts";
import { pollUntil } from "../support/poll.ts";

const AF_INET = 2;
const SOCK_RAW = 3;
const SCTP = 132;
const DO_NOT_WAIT = 0x40;
const IP_HEADER = 20;

/** Sends the first packet from one namespace; returns its destination port when it arrives in the other. */
export async function sctpPortSeen(from: string, to: string, target: string, port: number): Promise<number> {
  const sender = rawSocket(from);
  const receiver = rawSocket(to);
  const packet = initPacket(40_000, port);
  const address = Uint8Array.of(AF_INET, 0, 0, 0, ...target.split(".").map(Number), ...new Uint8Array(8));
  if (libc.connect(sender, address, address.length) < 0) throw new Error("connect failed");
  if (libc.sendto(sender, packet, packet.length, 0) < 0) throw new Error("sendto failed");
  const buffer = new Uint8Array(200);
  await pollUntil(() => libc.recv(receiver, buffer, buffer.length, DO_NOT_WAIT) > 0, "an SCTP packet");
  return new DataView(buffer.buffer).getUint16(IP_HEADER + 2);
}

function rawSocket(path: string): number {
  const netns = openNetns(path);
  if (netns === undefined) throw new Error(`no namespace ${path}`);
  const socket = runInNetns(netns, () => libc.socket(AF_INET, SOCK_RAW, SCTP));
  closeNetns(netns);
  return socket;
}

/** Conntrack checks the checksum: RFC 9260, appendix A. */
function initPacket(source: number, destination: number): Uint8Array<ArrayBuffer> {
  const packet = new Uint8Array(32);
  const view = new DataView(packet.buffer);
  view.setUint16(0, source);
  view.setUint16(2, destination);
  view.setUint8(12, 1);
  view.setUint16(14, 20);
  view.setUint32(16, 0x12345678);
  view.setUint32(20, 65536);
  view.setUint16(24, 1);
  view.setUint16(26, 1);
  view.setUint32(28, 1);
  view.setUint32(8, crc32c(packet), true);
  return packet;
}

function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
