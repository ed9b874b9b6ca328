/** For an agent that stays: its calls share one netfilter socket, which is kept open between them. */
import type { NetfilterAccess } from "./netfilter-access.ts";
import { closeNetlinkSocket, type NetlinkSocket, type SocketOpener } from "./netlink-socket.ts";

export function shareNetfilter(kernel: SocketOpener): NetfilterAccess {
  return new SharedNetfilter(kernel);
}

class SharedNetfilter implements NetfilterAccess {
  private current: NetlinkSocket | undefined;
  /** The number of calls that use a socket now. */
  private readonly users = new WeakMap<NetlinkSocket, number>();

  constructor(private readonly kernel: SocketOpener) {}

  async withSocket<Value>(work: (socket: NetlinkSocket) => Value | Promise<Value>): Promise<Value> {
    this.current ??= this.kernel.openSocket("netfilter");
    const socket = this.current;
    this.users.set(socket, (this.users.get(socket) ?? 0) + 1);
    try {
      return await work(socket);
    } catch (failure) {
      // It may still contain unread replies: the next call gets another socket.
      if (this.current === socket) this.current = undefined;
      throw failure;
    } finally {
      const left = (this.users.get(socket) ?? 1) - 1;
      this.users.set(socket, left);
      if (left === 0 && this.current !== socket) closeNetlinkSocket(socket);
    }
  }
}
