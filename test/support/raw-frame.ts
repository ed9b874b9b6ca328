/** Ethernet frames with a datagram, made by hand: with tags, and from any address to any other. */
import { addressBytes, parseAddress } from "../../src/ip/address.ts";
import * as libc from "../../src/linux/libc.ts";
import { insideNetns } from "./namespace-sockets.ts";

const AF_PACKET = 17;
const SOCK_RAW = 3;
const IPV4 = 0x0800;
const UDP = 17;
const TIME_TO_LIVE = 64;
const IP_HEADER = 20;
const UDP_HEADER = 8;

export interface Datagram {
  /** Of the link that receives it. */
  readonly mac: string;
  /** EtherTypes of the tags, the outer one first, each for VLAN 0. */
  readonly tags: readonly number[];
  readonly source: string;
  readonly target: string;
  readonly port: number;
}

/** Sends the frame by a link of the namespace, past its routes and its rules. */
export function sendFrame(netns: string, linkIndex: number, datagram: Datagram): void {
  const frame = frameOf(datagram);
  const socket = insideNetns(netns, () => libc.socket(AF_PACKET, SOCK_RAW, 0));
  try {
    const address = new Uint8Array(20);
    const view = new DataView(address.buffer);
    view.setUint16(0, AF_PACKET, true);
    view.setInt32(4, linkIndex, true);
    if (libc.bind(socket, address, address.length) < 0) throw new Error("bind failed");
    if (libc.sendto(socket, frame, frame.length, 0) !== frame.length) throw new Error("sendto failed");
  } finally {
    libc.close(socket);
  }
}

/** For the payload of a tunnel too. */
export function frameOf({ mac, tags, source, target, port }: Datagram): Uint8Array {
  const content = new TextEncoder().encode("?");
  const udp = [4321, port, UDP_HEADER + content.length, 0].flatMap(twoBytes);
  const length = IP_HEADER + udp.length + content.length;
  const header = [
    0x45,
    0,
    ...twoBytes(length),
    0,
    0,
    0,
    0,
    TIME_TO_LIVE,
    UDP,
    0,
    0,
    ...bytesOf(source),
    ...bytesOf(target),
  ];
  const checksum = twoBytes(checksumOf(header));
  const types = [...tags.flatMap((tag) => [...twoBytes(tag), 0, 0]), ...twoBytes(IPV4)];
  const macs = [...mac.split(":").map((byte) => Number.parseInt(byte, 16)), 2, 0, 0, 0, 0, 9];
  return Uint8Array.from([...macs, ...types, ...header.toSpliced(10, 2, ...checksum), ...udp, ...content]);
}

function twoBytes(value: number): readonly number[] {
  return [value >> 8, value & 0xff];
}

function bytesOf(text: string): Uint8Array {
  const address = parseAddress(text);
  if (address?.family !== 4) throw new Error(`not an IPv4 address: ${text}`);
  return addressBytes(address);
}

/** Of a header of IPv4 whose checksum is zero. */
function checksumOf(header: readonly number[]): number {
  let sum = 0;
  for (let index = 0; index < header.length; index += 2) sum += ((header[index] ?? 0) << 8) + (header[index + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
}
