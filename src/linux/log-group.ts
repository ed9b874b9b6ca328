/**
 * Packets that rules send to a log group of the kernel (nfnetlink_log), with the text that the rule gives them. The kernel copies
 * packets only while somebody listens, as many as fit into the buffer of the socket, and forgets the listener with the socket, however
 * the process ends. A group has one listener: the kernel refuses another one with EPERM.
 */
import type { AttributeCursor, MessageCursor } from "./netlink/message-reader.ts";
import type { NetlinkRequest } from "./netlink/request.ts";
import { drain } from "./netlink-group.ts";
import { closeNetlinkSocket, type NetlinkSocket, openNetlinkSocket, perform } from "./netlink-socket.ts";

const SUBSYSTEM = 4 << 8;
const MESSAGE = { packet: SUBSYSTEM | 0, config: SUBSYSTEM | 1 } as const;
/** `struct nfgenmsg`: family, version, and the group. */
const HEADER_LENGTH = 4;
const CONFIG = { command: 1, mode: 2, flushTimeout: 4 } as const;
const PACKET = { timestamp: 3, payload: 9, prefix: 10 } as const;
const BIND = 1;
const COPY_PACKET = 2;
/** The headers; a longer packet is cut. */
const COPIED_BYTES = 128;
/** Hundredths of a second: packets wait for each other so long before they are sent together. */
const FLUSH_TIMEOUT = 5;
/** Some hundred packets. */
const BUFFER_BYTES = 256 * 1024;
/** More than the buffer has room for: beyond, they arrive as fast as they are read. */
const MOST_MESSAGES = 2_000;

export interface GroupPacket {
  /** Of the rule. */
  readonly prefix: string;
  /** The first bytes, from the IP header on. */
  readonly bytes: Uint8Array;
  /** Milliseconds since 1970; absent if the kernel has not noted when the packet came. */
  readonly time?: number;
}

export interface GroupReading {
  readonly packets: readonly GroupPacket[];
  /** Some did not fit into the buffer. */
  readonly hasLost: boolean;
}

export interface GroupListener {
  /** What has arrived since the last call. */
  read(): GroupReading;
  /** Until `resume`, the kernel does nothing for the group. */
  pause(): void;
  resume(): void;
  close(): void;
}

/**
 * `lock`: another group, without packets, which is held also while the listener pauses, so that there is never a second one. A
 * listener that never pauses needs none.
 */
export function listenToGroup(group: number, lock?: number): GroupListener {
  const held = lock === undefined ? undefined : boundTo(lock);
  let socket: NetlinkSocket | undefined;
  const pause = () => {
    if (socket !== undefined) closeNetlinkSocket(socket);
    socket = undefined;
  };
  const resume = () => {
    socket ??= boundTo(group);
  };
  const close = () => {
    pause();
    if (held !== undefined) closeNetlinkSocket(held);
  };
  try {
    resume();
  } catch (failure) {
    close();
    throw failure;
  }
  return {
    read: () => (socket === undefined ? { packets: [], hasLost: false } : readFrom(socket)),
    pause,
    resume,
    close,
  };
}

function boundTo(group: number): NetlinkSocket {
  const socket = openNetlinkSocket("netfilter");
  try {
    socket.channel.enlarge(BUFFER_BYTES);
    perform(socket, [bindRequest(group)]);
    return socket;
  } catch (failure) {
    closeNetlinkSocket(socket);
    throw failure;
  }
}

function bindRequest(group: number): NetlinkRequest {
  return {
    action: `listen to log group ${group}`,
    type: MESSAGE.config,
    flags: 0,
    write(writer) {
      writer.raw(Uint8Array.of(0, 0, group >> 8, group & 0xff));
      writer.u8(CONFIG.command, BIND);
      const mode = new Uint8Array(6);
      new DataView(mode.buffer).setUint32(0, COPIED_BYTES);
      mode[4] = COPY_PACKET;
      writer.bytes(CONFIG.mode, mode);
      writer.u32Big(CONFIG.flushTimeout, FLUSH_TIMEOUT);
    },
  };
}

function readFrom(socket: NetlinkSocket): GroupReading {
  const packets: GroupPacket[] = [];
  const outcome = drain(
    socket,
    (message) => {
      const packet = readPacket(message);
      if (packet !== undefined) packets.push(packet);
    },
    MOST_MESSAGES,
  );
  return { packets, hasLost: outcome === "lost" };
}

function readPacket(message: MessageCursor): GroupPacket | undefined {
  if (message.type !== MESSAGE.packet) return undefined;
  let [prefix, bytes, time]: [string, Uint8Array | undefined, number | undefined] = ["", undefined, undefined];
  const attributes = message.attributes(HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type === PACKET.prefix) prefix = attributes.text();
    else if (attributes.type === PACKET.payload) bytes = attributes.copy();
    else if (attributes.type === PACKET.timestamp) time = readTime(attributes);
  }
  return bytes && { prefix, bytes, ...(time === undefined ? {} : { time }) };
}

/** Seconds and microseconds, each in 64 bits. */
function readTime(attribute: AttributeCursor): number | undefined {
  const bytes = attribute.copy();
  if (bytes.length < 16) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  return Number(view.getBigUint64(0)) * 1_000 + Number(view.getBigUint64(8)) / 1_000;
}
