/**
 * Every packet on an interface of a network namespace, read by a packet socket of the test itself: what really was on the link,
 * whatever the connection table of the host says. Only headers are kept.
 */
import { addressFromBytes, formatAddress } from "../../src/ip/address.ts";
import * as libc from "../../src/linux/libc.ts";
import { insideNetns } from "./namespace-sockets.ts";

export interface CapturedPacket {
  readonly family: 4 | 6;
  /** IP protocol number. */
  readonly protocol: number;
  readonly source: string;
  readonly destination: string;
  /** Of an echo request or reply: its identifier, twice. 0 if the protocol has none. */
  readonly sourcePort: number;
  readonly destinationPort: number;
  readonly icmp?: { readonly type: number; readonly code: number };
  readonly tcpFlags: number;
  /** From the IP header on. */
  readonly bytes: number;
  /** After the headers of IP and of the protocol. */
  readonly payload: number;
}

export interface PacketCapture extends Disposable {
  /** All packets so far, in their order. */
  packets(): readonly CapturedPacket[];
  /** How many did not fit into the buffer of the socket. */
  lost(): number;
}

const AF_PACKET = 17;
/** Without the header of the link. */
const SOCK_DGRAM = 2;
const EVERY_PROTOCOL = 3;
const SOL_SOCKET = 1;
const SO_RCVBUFFORCE = 33;
const SOL_PACKET = 263;
const PACKET_STATISTICS = 6;
const DO_NOT_WAIT = 0x40;
/** Returns the length of the packet, also if only its beginning fits. */
const TRUNCATE = 0x20;
const BUFFER_BYTES = 64 * 1024 * 1024;
const HEADER_BYTES = 128;
const DRAIN_MILLISECONDS = 20;

export function capturePackets(netns: string, interfaceName = "eth0"): PacketCapture {
  const socket = insideNetns(netns, () => openSocket(interfaceName));
  const packets: CapturedPacket[] = [];
  let lost = 0;
  const buffer = new Uint8Array(HEADER_BYTES);
  const drain = () => {
    for (;;) {
      const length = libc.recv(socket, buffer, buffer.length, DO_NOT_WAIT | TRUNCATE);
      if (length < 0) return;
      const packet = parsePacket(buffer.subarray(0, Math.min(length, buffer.length)), length);
      if (packet !== undefined) packets.push(packet);
    }
  };
  const timer = setInterval(drain, DRAIN_MILLISECONDS);
  return {
    packets() {
      drain();
      return packets;
    },
    lost() {
      const numbers = new Uint32Array(2);
      libc.getsockopt(socket, SOL_PACKET, PACKET_STATISTICS, numbers, Uint32Array.of(numbers.byteLength));
      lost += numbers[1] ?? 0;
      return lost;
    },
    [Symbol.dispose]() {
      clearInterval(timer);
      libc.close(socket);
    },
  };
}

function openSocket(interfaceName: string): number {
  const protocol = EVERY_PROTOCOL << 8;
  // Without a protocol it receives nothing until it is bound to the interface.
  const socket = libc.socket(AF_PACKET, SOCK_DGRAM, 0);
  const size = Int32Array.of(BUFFER_BYTES);
  libc.setsockopt(socket, SOL_SOCKET, SO_RCVBUFFORCE, size, size.byteLength);
  const address = new Uint8Array(20);
  const view = new DataView(address.buffer);
  view.setUint16(0, AF_PACKET, true);
  view.setUint16(2, protocol, true);
  view.setInt32(4, indexOf(interfaceName), true);
  if (socket < 0 || libc.bind(socket, address, address.length) < 0)
    throw new Error(`cannot capture packets of ${interfaceName}`);
  return socket;
}

/** In the network namespace of this thread. */
function indexOf(interfaceName: string): number {
  const SIOCGIFINDEX = 0x8933;
  const request = new Uint8Array(40);
  request.set(new TextEncoder().encode(interfaceName));
  const socket = libc.socket(2, SOCK_DGRAM, 0);
  const code = libc.ioctl(socket, SIOCGIFINDEX, request);
  libc.close(socket);
  if (code < 0) throw new Error(`no interface ${interfaceName}`);
  return new DataView(request.buffer).getInt32(16, true);
}

const ICMP = 1;
const TCP = 6;
const UDP = 17;
const ICMPV6 = 58;
const IPV6_HEADER = 40;
/** Echo request and reply of both families; others belong to a connection, or to none. */
const ECHO = new Set([0, 8, 128, 129]);

/** `length`: of the whole packet. Undefined: not of IP. */
export function parsePacket(bytes: Uint8Array, length: number): CapturedPacket | undefined {
  const version = (bytes[0] ?? 0) >> 4;
  const header = version === 4 ? ((bytes[0] ?? 0) & 15) * 4 : IPV6_HEADER;
  if ((version !== 4 && version !== 6) || bytes.length < header + 8) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const protocol = view.getUint8(version === 4 ? 9 : 6);
  const address = (start: number) => {
    const found = addressFromBytes(bytes.slice(start, start + (version === 4 ? 4 : 16)));
    return found === undefined ? "" : formatAddress(found);
  };
  const ends =
    version === 4
      ? { source: address(12), destination: address(16) }
      : { source: address(8), destination: address(24) };
  const rest = partsOf(protocol, view, header);
  return { family: version, protocol, ...ends, ...rest.fields, bytes: length, payload: length - header - rest.header };
}

function partsOf(protocol: number, view: DataView, at: number) {
  const none = { sourcePort: 0, destinationPort: 0, tcpFlags: 0 };
  const ports = () => ({ ...none, sourcePort: view.getUint16(at), destinationPort: view.getUint16(at + 2) });
  switch (protocol) {
    case TCP:
      return { fields: { ...ports(), tcpFlags: view.getUint8(at + 13) }, header: (view.getUint8(at + 12) >> 4) * 4 };
    case UDP:
      return { fields: ports(), header: 8 };
    case ICMP:
    case ICMPV6: {
      const icmp = { type: view.getUint8(at), code: view.getUint8(at + 1) };
      const id = ECHO.has(icmp.type) ? view.getUint16(at + 4) : 0;
      return { fields: { ...none, icmp, sourcePort: id, destinationPort: id }, header: 8 };
    }
    default:
      return { fields: none, header: 0 };
  }
}
