/**
 * Sockets to the host's own namespace. A process that ends with its call opens
 * one when it needs it; one that stays keeps a single one for all its calls.
 * Several may hold that one: whoever speaks by it has its answers before anybody
 * else comes to it.
 */
import { closeNetlinkSocket, type NetlinkSocket, openNetlinkSocket } from "../netlink-socket.ts";

let kept: NetlinkSocket | undefined;

/** From now on one socket serves all. The thread must be at home. */
export function keepRouteSocket(): void {
  kept ??= openNetlinkSocket("route");
}

/** Give it back with `returnRouteSocket`. */
export function takeRouteSocket(): NetlinkSocket {
  if (kept === undefined) return openNetlinkSocket("route");
  if (kept.isUnanswered) replace(kept);
  return kept;
}

export function returnRouteSocket(socket: NetlinkSocket): void {
  if (socket !== kept) closeNetlinkSocket(socket);
}

/** Runs the work with a socket to the host's own namespace. */
export function withRouteSocket<Value>(work: (socket: NetlinkSocket) => Value): Value {
  const socket = takeRouteSocket();
  try {
    return work(socket);
  } finally {
    returnRouteSocket(socket);
  }
}

/** An answer that nobody read may be left in it. Whoever holds it goes on with the new one. */
function replace(socket: NetlinkSocket): void {
  const opened = openNetlinkSocket("route");
  closeNetlinkSocket(socket);
  Object.assign(socket, opened);
}
