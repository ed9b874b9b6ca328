/**
 * Packets whose checksums no network card computes: echo requests, which the kernel sums up, and datagrams without a
 * checksum. None is fragmented. All sockets are non-blocking, in the current namespace of the thread.
 */
import { type Address, addressFromBytes, type Family } from "../ip/address.ts";
import { addressOf, systemCall } from "../system-call.ts";
import { closeFile } from "./files.ts";
import { KernelError } from "./kernel-error.ts";
import * as libc from "./libc.ts";
import { DOMAIN, socketAddress } from "./socket-address.ts";

const NON_BLOCKING_CLOEXEC = 0x800 | 0x80000;
const SOCK_DGRAM = 2;
const SOCK_RAW = 3;
const IPPROTO_UDP = 17;
const ICMP: Readonly<Record<Family, number>> = { 4: 1, 6: 58 };
const MSG_DONTWAIT = 0x40;
const SOL_SOCKET = 1;
const SO_NO_CHECK = 11;
const SO_RCVBUF = 8;
/** Many packets of several askers may wait at once; the kernel gives as much of it as its limits allow. */
const RECEIVE_BYTES = 1 << 20;
const [UDP_NO_CHECK6_TX, UDP_NO_CHECK6_RX] = [101, 102];
/** Never fragmented, and whatever the kernel believes about the path: level, option, value. */
const DONT_FRAGMENT: Readonly<Record<Family, readonly [number, number, number]>> = { 4: [0, 10, 3], 6: [41, 23, 3] };
/** Of a connected socket: level, option. */
const PATH_MTU: Readonly<Record<Family, readonly [number, number]>> = { 4: [0, 14], 6: [41, 24] };
const LARGEST = 65_536;

const IP_HEADER: Readonly<Record<Family, number>> = { 4: 20, 6: 40 };
/** Of UDP, and of ICMP. */
const HEADER = 8;
const ECHO_REQUEST: Readonly<Record<Family, number>> = { 4: 8, 6: 128 };
const ECHO_REPLY: Readonly<Record<Family, number>> = { 4: 0, 6: 129 };

export interface AskingSocket {
  /** Sends a packet of this size in all. It need not be received: a lost one is not an error. */
  ask(size: number): void;
  /** Whether the response to the last one has arrived. */
  isAnswered(): boolean;
  close(): void;
}

/** Begins every datagram; eleven random bytes follow, which the response repeats. */
const GREETING = new TextEncoder().encode("path?");
const NONCE_BYTES = 11;
const MESSAGE_BYTES = GREETING.length + NONCE_BYTES;
/** The smallest size to ask with. */
export const SMALL_PACKET = 64;

export interface DatagramSocket extends AskingSocket {
  /** Sends so many packets of this size, one right after the other. */
  askMany(size: number, count: number): void;
  /** How many of the last ones have been answered by now. */
  countAnswers(): number;
  /** What the kernel believes about the path: after a packet that was too large, what routers said. */
  mtu(): number;
}

/** Datagrams without a checksum, to somebody who runs `openAnsweringSocket`. */
export function openDatagramSocket(remote: Address, port: number): DatagramSocket {
  const fd = openUnchecked(remote.family);
  connect(fd, remote, port);
  /** Responses that have not arrived. */
  let expected = new Set<string>();
  let asked = 0;
  const socket: DatagramSocket = {
    mtu: () => readMtu(fd, remote.family),
    ask: (size) => socket.askMany(size, 1),
    isAnswered: () => socket.countAnswers() > 0,
    askMany(size, count) {
      const messages = Array.from({ length: count }, newMessage);
      [expected, asked] = [new Set(messages.map((message) => replyTo(message).toHex())), count];
      for (const message of messages) {
        const packet = new Uint8Array(size - IP_HEADER[remote.family] - HEADER);
        packet.set(message);
        libc.sendto(fd, packet, packet.length, 0);
      }
    },
    countAnswers() {
      for (const bytes of received(fd)) expected.delete(bytes.toHex());
      return asked - expected.size;
    },
    close: () => closeFile(fd),
  };
  return socket;
}

/** Echo requests, which the kernel of every host responds to. Needs the right to open raw sockets. */
export function openEchoSocket(remote: Address): AskingSocket {
  const { family } = remote;
  const fd = open(family, SOCK_RAW, ICMP[family]);
  connect(fd, remote, 0);
  let message = new Uint8Array();
  return {
    ask(size) {
      message = newMessage();
      const packet = new Uint8Array(size - IP_HEADER[family]);
      packet[0] = ECHO_REQUEST[family];
      packet.set(message, HEADER);
      // The kernel computes that of IPv6 itself.
      if (family === 4) new DataView(packet.buffer).setUint16(2, internetChecksum(packet));
      libc.sendto(fd, packet, packet.length, 0);
    },
    // Of IPv4 with the header of the packet. Every raw socket gets the replies of all.
    isAnswered: () =>
      received(fd)
        .map((bytes) => (family === 4 ? bytes.subarray(((bytes[0] ?? 0) & 15) * 4) : bytes))
        .some(
          (reply) =>
            reply[0] === ECHO_REPLY[family] && Bun.deepEquals(reply.slice(HEADER, HEADER + MESSAGE_BYTES), message),
        ),
    close: () => closeFile(fd),
  };
}

export interface AnsweringSocket {
  /** Responds to what has arrived, with no more than what was sent. */
  answer(): void;
  close(): void;
}

export function openAnsweringSocket(
  local: Address,
  port: number,
  isWanted: (from: Address) => boolean = () => true,
): AnsweringSocket {
  const fd = openUnchecked(local.family);
  const own = socketAddress(local, port);
  if (libc.bind(fd, own, own.length) < 0) {
    const errno = libc.lastErrno();
    closeFile(fd);
    throw new KernelError(`listen for datagrams at port ${port}`, errno);
  }
  const buffer = new Uint8Array(LARGEST);
  const from = new Uint8Array(own.length);
  const length = Uint32Array.of(from.length);
  return {
    answer() {
      for (let left = MOST_ANSWERS_AT_ONCE; left > 0; left -= 1) {
        length[0] = from.length;
        const at = [addressOf(from), addressOf(length)] as const;
        const count = systemCall("recvfrom", fd, buffer, buffer.length, MSG_DONTWAIT, ...at);
        if (count < 0) return;
        const isAsked = count >= MESSAGE_BYTES && GREETING.every((byte, index) => buffer[index] === byte);
        const reply = replyTo(buffer.slice(0, MESSAGE_BYTES));
        const sender = addressFromBytes(local.family === 4 ? from.slice(4, 8) : from.slice(8, 24));
        if (isAsked && sender !== undefined && isWanted(sender))
          systemCall("sendto", fd, reply, reply.length, MSG_DONTWAIT, addressOf(from), from.length);
      }
    },
    close: () => closeFile(fd),
  };
}

const MOST_ANSWERS_AT_ONCE = 64;

/** Not a question: two that answer would never end. */
function replyTo(message: Uint8Array): Uint8Array {
  const reply = message.slice();
  reply[GREETING.length - 1] = "!".charCodeAt(0);
  return reply;
}

function openUnchecked(family: Family): number {
  const fd = open(family, SOCK_DGRAM, IPPROTO_UDP);
  if (family === 4) setOption(fd, SOL_SOCKET, SO_NO_CHECK, 1);
  else for (const option of [UDP_NO_CHECK6_TX, UDP_NO_CHECK6_RX]) setOption(fd, IPPROTO_UDP, option, 1);
  setOption(fd, SOL_SOCKET, SO_RCVBUF, RECEIVE_BYTES);
  return fd;
}

export function openSocket(family: Family, type: number, protocol: number): number {
  const fd = libc.socket(DOMAIN[family], type | NON_BLOCKING_CLOEXEC, protocol);
  if (fd < 0) throw new KernelError("open a socket for probes", libc.lastErrno());
  return fd;
}

function open(family: Family, type: number, protocol: number): number {
  const fd = openSocket(family, type, protocol);
  const [level, option, value] = DONT_FRAGMENT[family];
  setOption(fd, level, option, value);
  return fd;
}

function setOption(fd: number, level: number, option: number, value: number): void {
  if (libc.setsockopt(fd, level, option, Int32Array.of(value), 4) === 0) return;
  const errno = libc.lastErrno();
  closeFile(fd);
  throw new KernelError(`set option ${option} of a socket for probes`, errno);
}

function readMtu(fd: number, family: Family): number {
  const value = Int32Array.of(0);
  const [level, option] = PATH_MTU[family];
  if (libc.getsockopt(fd, level, option, value, Int32Array.of(4)) === 0) return Math.min(value[0] ?? 0, LARGEST - 1);
  throw new KernelError("read the MTU of a path", libc.lastErrno());
}

function connect(fd: number, remote: Address, port: number): void {
  const address = socketAddress(remote, port);
  if (libc.connect(fd, address, address.length) === 0) return;
  const errno = libc.lastErrno();
  closeFile(fd);
  throw new KernelError("connect a socket for probes", errno);
}

function received(fd: number): readonly Uint8Array[] {
  const all: Uint8Array[] = [];
  const buffer = new Uint8Array(LARGEST);
  for (;;) {
    const count = libc.recv(fd, buffer, buffer.length, MSG_DONTWAIT);
    if (count < 0) return all;
    all.push(buffer.slice(0, count));
  }
}

function newMessage(): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(MESSAGE_BYTES);
  message.set(GREETING);
  message.set(crypto.getRandomValues(new Uint8Array(NONCE_BYTES)), GREETING.length);
  return message;
}

export function internetChecksum(bytes: Uint8Array): number {
  let sum = 0;
  for (let index = 0; index < bytes.length; index += 2) sum += ((bytes[index] ?? 0) << 8) + (bytes[index + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
}
