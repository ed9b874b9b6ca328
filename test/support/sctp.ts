/** SCTP with raw sockets: the first packet of an association, for kernels without SCTP support. */
import { addressBytes, parseAddress } from "../../src/ip/address.ts";
import * as libc from "../../src/linux/libc.ts";
import { closeNetns, openNetns, runInNetns } from "../../src/linux/netns.ts";
import { pollUntil } from "./poll.ts";

const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_RAW = 3;
const SCTP = 132;
const DO_NOT_WAIT = 0x40;
const IP_HEADER = 20;

/** Sends the first packet from one namespace; returns its destination port when it arrives in the other. */
export async function sctpPortSeen(from: string, to: string, target: string, port: number): Promise<number> {
  using receiver = rawSocket(to, AF_INET);
  send(from, target, port);
  let seen: number | undefined;
  await pollUntil(() => {
    seen = receiver.port();
    return seen !== undefined;
  }, "an SCTP packet");
  return seen ?? 0;
}

export interface SctpProbe {
  readonly from: string;
  readonly to: string;
  readonly target: string;
  readonly port: number;
  readonly patience: number;
}

/** Whether the first packet to the port arrives in time. */
export async function sctpArrives({ from, to, target, port, patience }: SctpProbe): Promise<boolean> {
  using receiver = rawSocket(to, target.includes(":") ? AF_INET6 : AF_INET);
  send(from, target, port);
  for (const end = performance.now() + patience; performance.now() < end; await Bun.sleep(5)) {
    for (let seen = receiver.port(); seen !== undefined; seen = receiver.port()) if (seen === port) return true;
  }
  return false;
}

function send(from: string, target: string, port: number): void {
  const address = parseAddress(target);
  if (address === undefined) throw new Error(`not an address: ${target}`);
  const family = address.family === 4 ? AF_INET : AF_INET6;
  using sender = rawSocket(from, family);
  // IPv6: the flow information comes before the address, and the scope after it.
  const gap = address.family === 4 ? [] : [0, 0, 0, 0];
  const name = Uint8Array.of(family, 0, 0, 0, ...gap, ...addressBytes(address), ...new Uint8Array(8));
  const packet = firstPacket(port);
  if (libc.connect(sender.descriptor, name, address.family === 4 ? 16 : 28) < 0) throw new Error("connect failed");
  if (libc.sendto(sender.descriptor, packet, packet.length, 0) < 0) throw new Error("sendto failed");
}

let lastSourcePort = 40_000;

/** From another source port each time: a packet with the ports of an earlier one belongs to its association. */
export function firstPacket(port: number): Uint8Array<ArrayBuffer> {
  lastSourcePort += 1;
  return initPacket(lastSourcePort, port);
}

interface RawSocket extends Disposable {
  readonly descriptor: number;
  /** The destination port of the next packet; `undefined` if there is none. */
  port(): number | undefined;
}

function rawSocket(path: string, family: number): RawSocket {
  const netns = openNetns(path);
  if (netns === undefined) throw new Error(`no namespace ${path}`);
  const descriptor = runInNetns(netns, () => libc.socket(family, SOCK_RAW, SCTP));
  closeNetns(netns);
  const buffer = new Uint8Array(200);
  return {
    descriptor,
    port() {
      if (libc.recv(descriptor, buffer, buffer.length, DO_NOT_WAIT) <= 0) return undefined;
      return new DataView(buffer.buffer).getUint16((family === AF_INET ? IP_HEADER : 0) + 2);
    },
    [Symbol.dispose]: () => void libc.close(descriptor),
  };
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
