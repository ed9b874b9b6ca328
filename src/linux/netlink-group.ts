/**
 * Netlink sockets that join multicast groups, to which the kernel sends a message about each change.
 *
 * Either the owner looks now and then at what has arrived (`drain`), or it is woken (`arrivals`).
 */
import { errnoOf } from "./errno.ts";
import { KernelError } from "./kernel-error.ts";
import { MessageCursor } from "./netlink/message-reader.ts";
import { type NetlinkSocket, type OnMessage, receiveOrErrno } from "./netlink-socket.ts";

/** The address of the socket, which messages about its changes carry. The kernel assigns it with the first message. */
export function portOf(socket: NetlinkSocket): number {
  return socket.channel.port();
}

/** From now on the socket gets the messages that the kernel sends to these groups, as many as fit into the buffer. */
export function joinGroups(socket: NetlinkSocket, groups: readonly number[], bufferBytes: number): void {
  socket.channel.join(groups, bufferBytes);
}

/**
 * `complete`: all that had arrived is read. `more`: it stopped after the wanted number of messages, and perhaps more have arrived. `lost`: some
 * messages did not fit into the socket's buffer.
 */
export type Drained = "complete" | "more" | "lost" | "lost and more";

export function hasLost(drained: Drained): boolean {
  return drained === "lost" || drained === "lost and more";
}

export function hasMore(drained: Drained): boolean {
  return drained === "more" || drained === "lost and more";
}

/** Reads what has arrived, at most about `most` messages: what arrives as fast as it is read would never end. */
export function drain(socket: NetlinkSocket, onMessage: OnMessage, most = Number.POSITIVE_INFINITY): Drained {
  let isLost = false;
  for (let count = 0; count < most; ) {
    const received = receiveOrErrno(socket);
    if (typeof received !== "number") for (; received.next(); count++) onMessage(received);
    else if (received === errnoOf("EAGAIN")) return isLost ? "lost" : "complete";
    else if (received === errnoOf("ENOBUFS")) isLost = true;
    else throw new KernelError("read the kernel's messages", received);
  }
  return isLost ? "lost and more" : "more";
}

/**
 * What arrives, without polling, until the signal is aborted: a cursor before one or more messages, or `lost` if messages
 * did not fit into the socket's buffer.
 */
export async function* arrivals(socket: NetlinkSocket, signal: AbortSignal): AsyncGenerator<MessageCursor | "lost"> {
  for await (const arrived of socket.channel.arrivals(signal)) {
    yield arrived === "lost" ? arrived : new MessageCursor(arrived);
  }
}
