/**
 * The device of IPv4 in IPv4 tunnels. It has no addresses of its own ends: the gateway of each route is the other end, and
 * the route to that gateway decides where packets are sent from.
 */
import type { NetlinkRequest } from "../netlink/request.ts";
import { createLink } from "./create-link.ts";
import { LINK } from "./link-wire.ts";

/** EEXIST if it exists, EOPNOTSUPP if the kernel has no IPIP. Loading its module creates a device named `tunl0`. */
export function createIpip(device: {
  readonly name: string;
  readonly mtu: number;
  readonly state: "up" | "down";
}): NetlinkRequest {
  return createLink({ ...device, kind: "ipip", attributes: (writer) => writer.u32(LINK.mtu, device.mtu) });
}
