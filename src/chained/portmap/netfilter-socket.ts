import { closeLater } from "../../linux/close-later.ts";
import { type NetlinkSocket, openNetlinkSocket } from "../../linux/netlink-socket.ts";
import type { Surroundings } from "./surroundings.ts";

/** For as long as the work takes. Who waits for the answer does not wait for the socket's closing. */
export async function withNetfilterSocket<Value>(
  { lifetime }: Surroundings,
  work: (socket: NetlinkSocket) => Value | Promise<Value>,
): Promise<Value> {
  const socket = openNetlinkSocket("netfilter");
  try {
    return await work(socket);
  } finally {
    closeLater(socket.fd, lifetime);
  }
}
