import { closeNetlinkSocket, type NetlinkSocket, openNetlinkSocket } from "../netlink-socket.ts";

/** Runs the work with a socket to the host's own namespace. */
export function withRouteSocket<Value>(work: (socket: NetlinkSocket) => Value): Value {
  const socket = openNetlinkSocket("route");
  try {
    return work(socket);
  } finally {
    closeNetlinkSocket(socket);
  }
}
