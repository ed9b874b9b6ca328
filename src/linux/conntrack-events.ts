/**
 * Tracked connections, as the kernel tells of them: events when one begins and when one ends, and the whole table.
 *
 *   begins   both tuples, the label
 *   ended    both tuples, the counters and times; no label
 *   table    all of these
 *
 * Events that do not fit into the buffer of the socket are gone; the reader is told that there were some, not how many.
 */
import { listRequest } from "./conntrack-entries.ts";
import { TrackedMessage } from "./conntrack-message.ts";
import type { MessageCursor } from "./netlink/message-reader.ts";
import { type Drained, drain, joinGroups } from "./netlink-group.ts";
import { closeNetlinkSocket, dumpInSteps, openNetlinkSocket } from "./netlink-socket.ts";

const SUBSYSTEM = 1 << 8;
const MESSAGE = { entry: SUBSYSTEM | 0, ended: SUBSYSTEM | 2 } as const;
/** The kernel's `enum nfnetlink_groups`. */
const GROUP = { begins: 1, ended: 3 } as const;
const FAMILIES = [4, 6] as const;

export interface TrackedReader {
  /** The message is valid during the call only. */
  begins(message: TrackedMessage): void;
  ended(message: TrackedMessage): void;
}

export interface ConnectionEvents {
  /** Reads what has arrived, at most about `most` events. */
  read(reader: TrackedReader, most: number): Drained;
  close(): void;
}

/** In the current network namespace of the thread. An event takes 0.8 to 1.3 kB of the buffer. */
export function listenToConnections(bufferBytes: number): ConnectionEvents {
  const socket = openNetlinkSocket("netfilter");
  try {
    joinGroups(socket, [GROUP.begins, GROUP.ended], bufferBytes);
  } catch (failure) {
    closeNetlinkSocket(socket);
    throw failure;
  }
  const tracked = new TrackedMessage();
  return {
    read: (reader, most) => drain(socket, (message) => readEvent(message, tracked, reader), most),
    close: () => closeNetlinkSocket(socket),
  };
}

function readEvent(message: MessageCursor, tracked: TrackedMessage, reader: TrackedReader): void {
  if (message.type !== MESSAGE.entry && message.type !== MESSAGE.ended) return;
  tracked.read(message.view, message.start, message.end);
  if (message.type === MESSAGE.entry) reader.begins(tracked);
  else reader.ended(tracked);
}

export interface TableReader {
  /** The message is valid during the call only. A connection may come twice. */
  entry(message: TrackedMessage): void;
  /** Between parts of the table: other work may be done meanwhile. */
  pause(): Promise<void>;
}

/** Reads the whole table of the current network namespace of the thread: both families, about 100 entries at a time. */
export async function readConnectionTable(reader: TableReader): Promise<void> {
  const socket = openNetlinkSocket("netfilter");
  const tracked = new TrackedMessage();
  const read = (message: MessageCursor) => {
    tracked.read(message.view, message.start, message.end);
    reader.entry(tracked);
    return undefined;
  };
  try {
    for (const family of FAMILIES)
      await dumpInSteps(socket, listRequest(family), { read, pause: () => reader.pause() });
  } finally {
    closeNetlinkSocket(socket);
  }
}
