/**
 * The socket that a call uses to talk to netfilter.
 *
 * Closing it makes the kernel wait for whatever was removed, 8 to 15 ms, and
 * whoever wants to change something meanwhile waits too. So a process that ends
 * with its call leaves the closing to the kernel, and an agent that stays keeps
 * its socket open (shared-netfilter.ts).
 */
import { closeLater } from "./close-later.ts";
import { type NetlinkSocket, openNetlinkSocket } from "./netlink-socket.ts";

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
      closeLater(socket.fd, "ends");
    }
  },
};
