/**
 * The socket that a call uses for netfilter.
 *
 * Closing it makes the kernel wait until removed elements are freed, 8 to 15 ms, and
 * every other process that changes a ruleset waits too. A process that ends with its
 * call has to wait; an agent that stays keeps its socket open (shared-netfilter.ts).
 */
import { closeNetlinkSocket, type NetlinkSocket, ownSockets, type SocketOpener } from "./netlink-socket.ts";

export interface NetfilterAccess {
  /** The socket may be used until the work is done. */
  withSocket<Value>(work: (socket: NetlinkSocket) => Value | Promise<Value>): Promise<Value>;
}

/** For a process that ends with its call. */
export function netfilterOf(kernel: SocketOpener): NetfilterAccess {
  return {
    async withSocket(work) {
      const socket = kernel.openSocket("netfilter");
      try {
        return await work(socket);
      } finally {
        closeNetlinkSocket(socket);
      }
    },
  };
}

export const directNetfilter = netfilterOf(ownSockets);
