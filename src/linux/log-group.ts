/**
 * Packets that rules send to a log group of the kernel (nfnetlink_log), with the text that the rule gives them. The kernel copies
 * packets only while somebody listens, as many as fit into the buffer of the socket, and forgets the listener with the socket, however
 * the process ends. A group has one listener: the kernel refuses another one with EPERM.
 */
import { PluginError } from "../errors.ts";
import { familyIn, TrackedMessage } from "./conntrack-message.ts";
import { isKernelError } from "./kernel-error.ts";
import type { AttributeCursor, MessageCursor } from "./netlink/message-reader.ts";
import type { NetlinkRequest } from "./netlink/request.ts";
import { drain, hasLost } from "./netlink-group.ts";
import { closeNetlinkSocket, type NetlinkSocket, openNetlinkSocket, perform } from "./netlink-socket.ts";

const SUBSYSTEM = 4 << 8;
const MESSAGE = { packet: SUBSYSTEM | 0, config: SUBSYSTEM | 1 } as const;
/** `struct nfgenmsg`: family, version, and the group. */
const HEADER_LENGTH = 4;
const CONFIG = { command: 1, mode: 2, flushTimeout: 4, flags: 6 } as const;
const PACKET = { timestamp: 3, payload: 9, prefix: 10, connection: 18, connectionInfo: 19 } as const;
/** The kernel's `enum ip_conntrack_info`: packets in the direction of the one that began the connection. */
const OWN_CONNECTION: ReadonlySet<number> = new Set([0, 2]);
const BIND = 1;
const WITH_CONNECTION = 4;
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
  /**
   * Of the packet, which was sent in its first direction: as it is at the rule, so with the label that earlier rules have written.
   * Absent if nobody has asked for it, if the kernel does not tell it, and if the packet belongs to none, as an ICMP error does.
   */
  readonly connection?: TrackedMessage;
}

export interface GroupReading {
  readonly packets: readonly GroupPacket[];
  /** Some did not fit into the buffer. */
  readonly hasLost: boolean;
}

export interface GroupListener {
  /** Whether the kernel tells connections, and somebody has asked for them. */
  readonly hasConnections: boolean;
  /** What has arrived since the last call. */
  read(): GroupReading;
  /** Until `resume`, the kernel does nothing for the group. */
  pause(): void;
  resume(): void;
  close(): void;
}

export interface GroupOptions {
  /**
   * Another group, without packets, which is held also while the listener pauses, so that there is never a second one. A listener
   * that never pauses needs none.
   */
  readonly lock?: number;
  /** With the connection of each packet, if the kernel can (CONFIG_NETFILTER_NETLINK_GLUE_CT). */
  readonly withConnections?: boolean;
}

export function listenToGroup(group: number, { lock, withConnections = false }: GroupOptions = {}): GroupListener {
  const held = lock === undefined ? undefined : boundTo(lock);
  let listening: Listening | undefined;
  const pause = () => {
    if (listening !== undefined) closeNetlinkSocket(listening.socket);
    listening = undefined;
  };
  const resume = () => {
    listening ??= withConnections ? boundWithConnections(group) : { socket: boundTo(group), hasConnections: false };
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
    hasConnections: listening?.hasConnections === true,
    read: () => (listening === undefined ? { packets: [], hasLost: false } : readFrom(listening.socket)),
    pause,
    resume,
    close,
  };
}

interface Listening {
  readonly socket: NetlinkSocket;
  readonly hasConnections: boolean;
}

/** A kernel that was built without the connection in reports refuses the flag; then packets are read without it. */
function boundWithConnections(group: number): Listening {
  try {
    return { socket: boundTo(group, WITH_CONNECTION), hasConnections: true };
  } catch (failure) {
    if (!isKernelError(failure, "EOPNOTSUPP")) throw failure;
    return { socket: boundTo(group), hasConnections: false };
  }
}

function boundTo(group: number, flags = 0): NetlinkSocket {
  const socket = openNetlinkSocket("netfilter");
  try {
    socket.channel.enlarge(BUFFER_BYTES);
    perform(socket, [bindRequest(group, flags)]);
    return socket;
  } catch (failure) {
    closeNetlinkSocket(socket);
    throw failure;
  }
}

function bindRequest(group: number, flags: number): NetlinkRequest {
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
      if (flags !== 0) writer.u16Big(CONFIG.flags, flags);
    },
  };
}

function readFrom(socket: NetlinkSocket): GroupReading {
  const packets: GroupPacket[] = [];
  let hasUnreadable = false;
  const drained = drain(
    socket,
    (message) => {
      const packet = readGroupPacket(message);
      if (packet === "unreadable") hasUnreadable = true;
      else if (packet !== undefined) packets.push(packet);
    },
    MOST_MESSAGES,
  );
  return { packets, hasLost: hasLost(drained) || hasUnreadable };
}

/** `undefined`: it is not about a packet. One whose connection cannot be read is a packet without it. */
export function readGroupPacket(message: MessageCursor): GroupPacket | "unreadable" | undefined {
  if (message.type !== MESSAGE.packet) return undefined;
  return whatFits(() => readPacket(message));
}

function readPacket(message: MessageCursor): GroupPacket | undefined {
  let [prefix, bytes, time]: [string, Uint8Array | undefined, number | undefined] = ["", undefined, undefined];
  let [connection, info]: [TrackedMessage | "unreadable" | undefined, number | undefined] = [undefined, undefined];
  const attributes = message.attributes(HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type === PACKET.prefix) prefix = attributes.text();
    else if (attributes.type === PACKET.payload) bytes = attributes.copy();
    else if (attributes.type === PACKET.timestamp) time = readTime(attributes);
    else if (attributes.type === PACKET.connection) connection = whatFits(() => readConnection(message, attributes));
    else if (attributes.type === PACKET.connectionInfo && attributes.length === 4) info = attributes.u32Big();
  }
  return (
    bytes && {
      ...{ prefix, bytes },
      ...(time === undefined ? {} : { time }),
      ...(connection instanceof TrackedMessage && OWN_CONNECTION.has(info ?? Number.NaN) ? { connection } : {}),
    }
  );
}

function readConnection({ view, start, end }: MessageCursor, attribute: AttributeCursor): TrackedMessage {
  const connection = new TrackedMessage();
  connection.readAttributes(familyIn(view, start, end), view, attribute.start, attribute.stop);
  return connection;
}

/** Lengths that do not fit cost one packet, not the listener. */
function whatFits<Value>(read: () => Value): Value | "unreadable" {
  try {
    return read();
  } catch (failure) {
    if (failure instanceof PluginError) return "unreadable";
    throw failure;
  }
}

/** Seconds and microseconds, each in 64 bits. */
function readTime(attribute: AttributeCursor): number | undefined {
  const bytes = attribute.copy();
  if (bytes.length < 16) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  return Number(view.getBigUint64(0)) * 1_000 + Number(view.getBigUint64(8)) / 1_000;
}
