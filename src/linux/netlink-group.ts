/**
 * Netlink sockets that join multicast groups, to which the kernel sends a message about each change.
 *
 * Either the owner looks now and then at what has arrived (`drain`), or it is woken (`arrivals`).
 */
import { errnoOf } from "./errno.ts";
import { KernelError } from "./kernel-error.ts";
import * as libc from "./libc.ts";
import { MessageCursor } from "./netlink/message-reader.ts";
import {
  AF_NETLINK,
  type NetlinkSocket,
  type OnMessage,
  receiveOrErrno,
  SO_RCVBUFFORCE,
  SOL_NETLINK,
  SOL_SOCKET,
  setOption,
} from "./netlink-socket.ts";

const NETLINK_ADD_MEMBERSHIP = 1;

/** The address of the socket, which messages about its changes carry. The kernel assigns it with the first message. */
export function portOf(socket: NetlinkSocket): number {
  const address = new Uint32Array(3);
  if (libc.getsockname(socket.fd, address, Uint32Array.of(address.byteLength)) === 0) return address[1] ?? 0;
  throw new KernelError("read the address of a netlink socket", libc.lastErrno());
}

/** From now on the socket gets the messages that the kernel sends to these groups, as many as fit into the buffer. */
export function joinGroups(socket: NetlinkSocket, groups: readonly number[], bufferBytes: number): void {
  setOption(socket, SOL_SOCKET, SO_RCVBUFFORCE, Int32Array.of(bufferBytes));
  // A socket without an address would get nothing.
  const address = Uint32Array.of(AF_NETLINK, 0, 0);
  if (libc.bind(socket.fd, address, address.byteLength) !== 0)
    throw new KernelError(`bind a netlink socket (${socket.protocol})`, libc.lastErrno());
  for (const group of groups) setOption(socket, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, Int32Array.of(group));
}

/** Reads what has arrived. Returns `lost` if messages did not fit into the socket's buffer. */
export function drain(socket: NetlinkSocket, onMessage: OnMessage): "complete" | "lost" {
  let outcome: "complete" | "lost" = "complete";
  for (;;) {
    const received = receiveOrErrno(socket);
    if (typeof received !== "number") while (received.next()) onMessage(received);
    else if (received === errnoOf("EAGAIN")) return outcome;
    else if (received === errnoOf("ENOBUFS")) outcome = "lost";
    else throw new KernelError("read the kernel's messages", received);
  }
}

/**
 * What arrives, without polling, until the signal is aborted: a cursor before one or more messages, or `lost` if messages
 * did not fit into the socket's buffer.
 */
export async function* arrivals(socket: NetlinkSocket, signal: AbortSignal): AsyncGenerator<MessageCursor | "lost"> {
  while (!signal.aborted) {
    const reader = Bun.file(socket.fd).stream().getReader();
    const cancel = () => void reader.cancel().catch(() => {});
    signal.addEventListener("abort", cancel, { once: true });
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        yield new MessageCursor(value);
      }
    } catch (error) {
      if (!hasCode(error, "ENOBUFS")) throw error;
      yield "lost";
    } finally {
      signal.removeEventListener("abort", cancel);
      cancel();
    }
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
