import { closeNetlinkSocket, type NetlinkSocket, type SocketOpener } from "../netlink-socket.ts";

/** Runs the work with a socket to the host's own namespace. */
export function withRouteSocket<Value>(kernel: SocketOpener, work: (socket: NetlinkSocket) => Value): Value {
  const socket = kernel.openSocket("route");
  try {
    return work(socket);
  } finally {
    closeNetlinkSocket(socket);
  }
}
