/**
 * Makes the end of a TCP connection say where it is: to a SYN within a connection it replies with an ACK that has its present
 * sequence numbers (RFC 5961, section 4.2), and neither end is disturbed. The packet is sent in the name of the other end.
 *
 *   in the name of the client ──▶ server    SYN
 *   in the name of the server ──▶ client    SYN, ACK
 *
 * Hosts on the way that track the connection let each of them pass in this direction only: a packet that does not fit is invalid to
 * them, but these may say that the two ends know better.
 */
import { type Address, addressBytes, type Family } from "../ip/address.ts";
import { addressOf, systemCall } from "../system-call.ts";
import { closeFile } from "./files.ts";
import { KernelError } from "./kernel-error.ts";
import * as libc from "./libc.ts";
import { DOMAIN, socketAddress } from "./socket-address.ts";
import { internetChecksum } from "./unchecked-datagrams.ts";

/** With the header of the packet, of either family. */
const IPPROTO_RAW = 255;
const SOCK_RAW_NON_BLOCKING_CLOEXEC = 3 | 0x800 | 0x80000;
const [SOL_SOCKET, SO_MARK] = [1, 36];
const TCP = 6;
const HOPS = 64;
const HEADER: Readonly<Record<Family, number>> = { 4: 20, 6: 40 };
const TCP_HEADER = 20;
const WORDS_OF_TCP_HEADER = TCP_HEADER / 4;
const FLAGS = { client: 2, server: 2 | 16 } as const;
/** Sequence numbers are not known, and need not be: a SYN is never accepted within a connection. */
const SEQUENCE = 1;
/** What an end acknowledges that takes a probe for the beginning of a connection: it has none any more. */
export const PROBE_ACKNOWLEDGEMENT = SEQUENCE + 1;

export interface TcpEnd {
  readonly address: Address;
  readonly port: number;
}

/** In whose name: the client has begun the connection. */
export type ProbeSender = keyof typeof FLAGS;

export interface TcpProber {
  /** `from` is the other end as `to` knows it. A packet that cannot be sent is lost, as on its way. */
  probe(from: TcpEnd, to: TcpEnd, sender: ProbeSender): void;
  close(): void;
}

/** In the current network namespace of the thread. Its packets have the mark. Needs the right to open raw sockets. */
export function openTcpProber(mark: number): TcpProber {
  const sockets = new Map<Family, number>();
  return {
    probe(from, to, sender) {
      const { family } = to.address;
      const fd = sockets.get(family) ?? openRaw(family, mark);
      sockets.set(family, fd);
      const packet = probePacket(from, to, sender);
      const name = socketAddress(to.address, 0);
      systemCall("sendto", fd, packet, packet.length, 0, addressOf(name), name.length);
    },
    close() {
      for (const fd of sockets.values()) closeFile(fd);
      sockets.clear();
    },
  };
}

function openRaw(family: Family, mark: number): number {
  const fd = libc.socket(DOMAIN[family], SOCK_RAW_NON_BLOCKING_CLOEXEC, IPPROTO_RAW);
  if (fd < 0) throw new KernelError("open a socket for TCP probes", libc.lastErrno());
  if (libc.setsockopt(fd, SOL_SOCKET, SO_MARK, Int32Array.of(mark), 4) === 0) return fd;
  const errno = libc.lastErrno();
  closeFile(fd);
  throw new KernelError("mark TCP probes", errno);
}

export function probePacket(from: TcpEnd, to: TcpEnd, sender: ProbeSender): Uint8Array<ArrayBuffer> {
  const { family } = to.address;
  const [source, destination] = [addressBytes(from.address), addressBytes(to.address)];
  const header = HEADER[family];
  const packet = new Uint8Array(header + TCP_HEADER);
  const view = new DataView(packet.buffer);
  if (family === 4) {
    packet[0] = 0x45;
    view.setUint16(2, packet.length);
    packet[8] = HOPS;
    packet[9] = TCP;
    packet.set(source, 12);
    packet.set(destination, 16);
  } else {
    packet[0] = 0x60;
    view.setUint16(4, TCP_HEADER);
    packet[6] = TCP;
    packet[7] = HOPS;
    packet.set(source, 8);
    packet.set(destination, 24);
  }
  view.setUint16(header, from.port);
  view.setUint16(header + 2, to.port);
  view.setUint32(header + 4, SEQUENCE);
  packet[header + 12] = WORDS_OF_TCP_HEADER << 4;
  packet[header + 13] = FLAGS[sender];
  const summed = Uint8Array.of(...source, ...destination, 0, TCP, 0, TCP_HEADER, ...packet.subarray(header));
  view.setUint16(header + 16, internetChecksum(summed));
  return packet;
}
