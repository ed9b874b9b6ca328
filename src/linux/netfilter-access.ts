/**
 * The socket that a call uses to talk to netfilter.
 *
 * Closing it makes the kernel wait for whatever was removed, 8 to 15 ms, and
 * everyone who wants to change something meanwhile waits too. A process that ends
 * with its call pays for that; an agent that stays keeps its socket open
 * (shared-netfilter.ts).
 */
import { closeNetlinkSocket, type NetlinkSocket, openNetlinkSocket } from "./netlink-socket.ts";

export interface NetfilterAccess {
  /** The socket is the work's until the work is done. */
  withSocket<Value>(work: (socket: NetlinkSocket) => Value | Promise<Value>): Promise<Value>;
}

/** For a process that ends with its call. */
export const directNetfilter: NetfilterAccess = {
  async withSocket(work) {
    const socket = openNetlinkSocket("netfilter");
    try {
      return await work(socket);
    } finally {
      closeNetlinkSocket(socket);
    }
  },
};
