/**
 * The socket that a call speaks to netfilter by.
 *
 * Its closing makes the kernel wait for whatever was removed, and whoever would
 * change something meanwhile waits along. So a process that ends with its call
 * leaves the closing to the kernel, and one that goes on keeps its socket open.
 */
import { closeLater } from "../../linux/close-later.ts";
import { type NetlinkSocket, openNetlinkSocket } from "../../linux/netlink-socket.ts";
import type { Surroundings } from "./surroundings.ts";

let kept: NetlinkSocket | undefined;

/** For as long as the work takes. */
export async function withNetfilterSocket<Value>(
  { lifetime }: Surroundings,
  work: (socket: NetlinkSocket) => Value | Promise<Value>,
): Promise<Value> {
  if (lifetime === "call") return withKeptSocket(work);
  const socket = openNetlinkSocket("netfilter");
  try {
    return await work(socket);
  } finally {
    closeLater(socket.fd, lifetime);
  }
}

async function withKeptSocket<Value>(work: (socket: NetlinkSocket) => Value | Promise<Value>): Promise<Value> {
  kept ??= openNetlinkSocket("netfilter");
  const socket = kept;
  users.set(socket, (users.get(socket) ?? 0) + 1);
  try {
    return await work(socket);
  } catch (failure) {
    // An answer that nobody read may be left in it: whoever comes next gets another.
    if (kept === socket) kept = undefined;
    throw failure;
  } finally {
    const left = (users.get(socket) ?? 1) - 1;
    users.set(socket, left);
    if (left === 0 && kept !== socket) closeLater(socket.fd, "call");
  }
}

/** How many calls use a socket now. */
const users = new WeakMap<NetlinkSocket, number>();
