/**
 * What the sender of a packet is told, by a socket of the test that is connected to the destination: an answer, an error of its
 * own kernel (the number that a program would get), or nothing.
 */
import { addressBytes, parseAddress } from "../../src/ip/address.ts";
import * as libc from "../../src/linux/libc.ts";
import { insideNetns } from "../support/namespace-sockets.ts";
import { patience as timesAsLong } from "../support/proof-size.ts";
import { firstPacket } from "../support/sctp.ts";
import type { End } from "./policy-site.ts";

export type Protocol = "tcp" | "udp" | "icmp" | "sctp";

export interface Question {
  readonly from: Pick<End, "netns">;
  readonly address: string;
  readonly protocol: Protocol;
  /** Of TCP, UDP and SCTP. */
  readonly port: number;
}

/** The number of an error; `silence`: nothing within the limit. */
export type Told = "answer" | "silence" | number;

const [EACCES, ECONNREFUSED, EHOSTUNREACH] = [13, 111, 113];

/** What a program gets of a packet that is rejected: "administratively prohibited" is another error in each family. */
export const REFUSED: Readonly<Record<4 | 6, Readonly<Record<Protocol, number>>>> = {
  4: { tcp: ECONNREFUSED, udp: EHOSTUNREACH, icmp: EHOSTUNREACH, sctp: EHOSTUNREACH },
  6: { tcp: ECONNREFUSED, udp: EACCES, icmp: EACCES, sctp: EACCES },
};

/** In milliseconds: whoever is told anything is told at once, but the machine may be busy. */
export const LONG_ENOUGH = 10_000;
export const SHORT = 600 * timesAsLong;

const AF_INET = 2;
const AF_INET6 = 10;
const NONBLOCKING = 0x800;
const SOCKET = { stream: 1, datagram: 2, raw: 3 } as const;
const IPPROTO = { icmp: 1, icmpv6: 58, sctp: 132 } as const;
const EAGAIN = 11;
const EINPROGRESS = 115;
const DO_NOT_WAIT = 0x40;
const SOL_SOCKET = 1;
const SO_ERROR = 4;

export async function whatIsTold({ from, address, protocol, port }: Question, milliseconds: number): Promise<Told> {
  const family = address.includes(":") ? 6 : 4;
  const socket = insideNetns(from.netns, () => openSocket(family, protocol));
  try {
    const name = socketAddress(address, protocol === "tcp" || protocol === "udp" ? port : 0);
    if (libc.connect(socket, name, family === 4 ? 16 : 28) < 0 && libc.lastErrno() !== EINPROGRESS)
      return libc.lastErrno();
    if (protocol !== "tcp") {
      const content = contentOf(family, protocol, port);
      if (libc.sendto(socket, content, content.length, 0) < 0) return libc.lastErrno();
    }
    for (const end = performance.now() + milliseconds; performance.now() < end; await Bun.sleep(1)) {
      const outcome = protocol === "tcp" ? connected(socket) : received(socket, family, protocol);
      if (outcome !== undefined) return outcome;
    }
    return "silence";
  } finally {
    libc.close(socket);
  }
}

function openSocket(family: 4 | 6, protocol: Protocol): number {
  const domain = family === 4 ? AF_INET : AF_INET6;
  switch (protocol) {
    case "tcp":
      return libc.socket(domain, SOCKET.stream | NONBLOCKING, 0);
    case "udp":
      return libc.socket(domain, SOCKET.datagram, 0);
    case "icmp":
      return libc.socket(domain, SOCKET.raw, family === 4 ? IPPROTO.icmp : IPPROTO.icmpv6);
    case "sctp":
      return libc.socket(domain, SOCKET.raw, IPPROTO.sctp);
  }
}

function socketAddress(text: string, port: number): Uint8Array {
  const address = parseAddress(text);
  if (address === undefined) throw new Error(`not an address: ${text}`);
  const ports = [port >> 8, port & 255];
  if (address.family === 4) return Uint8Array.of(AF_INET, 0, ...ports, ...addressBytes(address), ...new Uint8Array(8));
  return Uint8Array.of(AF_INET6, 0, ...ports, 0, 0, 0, 0, ...addressBytes(address), 0, 0, 0, 0);
}

const ECHO_REQUEST = { 4: 8, 6: 128 } as const;
const ECHO_REPLY = { 4: 0, 6: 129 } as const;

function contentOf(family: 4 | 6, protocol: "udp" | "icmp" | "sctp", port: number): Uint8Array<ArrayBuffer> {
  if (protocol === "udp") return new TextEncoder().encode("?");
  if (protocol === "sctp") return firstPacket(port);
  const echo = Uint8Array.of(ECHO_REQUEST[family], 0, 0, 0, ...crypto.getRandomValues(new Uint8Array(2)), 0, 1);
  const view = new DataView(echo.buffer);
  let sum = 0;
  for (let offset = 0; offset < echo.length; offset += 2) sum += view.getUint16(offset);
  // Of ICMPv6 the kernel writes it.
  if (family === 4) view.setUint16(2, ~((sum & 0xffff) + (sum >> 16)) & 0xffff);
  return echo;
}

/** `undefined`: not decided yet. */
function connected(socket: number): Told | undefined {
  const value = new Int32Array(1);
  libc.getsockopt(socket, SOL_SOCKET, SO_ERROR, value, Int32Array.of(4));
  if (value[0] !== 0) return value[0];
  // The answer of a server comes after the connection; without one there is none yet to read from.
  const length = libc.recv(socket, new Uint8Array(1), 1, DO_NOT_WAIT);
  return length >= 0 ? "answer" : libc.lastErrno() === EAGAIN ? undefined : refusalOf(libc.lastErrno());
}

const ENOTCONN = 107;

function refusalOf(errno: number): number | undefined {
  return errno === ENOTCONN ? undefined : errno;
}

function received(socket: number, family: 4 | 6, protocol: "udp" | "icmp" | "sctp"): Told | undefined {
  const buffer = new Uint8Array(200);
  const length = libc.recv(socket, buffer, buffer.length, DO_NOT_WAIT);
  if (length < 0) return libc.lastErrno() === EAGAIN ? undefined : libc.lastErrno();
  // Raw sockets hear other ICMP messages of the same peer, too.
  if (protocol !== "icmp") return "answer";
  return buffer[family === 4 ? 20 : 0] === ECHO_REPLY[family] ? "answer" : undefined;
}
