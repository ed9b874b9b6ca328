/**
 * The device of IPv4 in IPv4 tunnels. It has no addresses of its own ends: the gateway of each route is the other end, and
 * the route to that gateway decides where packets are sent from.
 */
import type { NetlinkRequest } from "../netlink/request.ts";
import { FLAG } from "../netlink/wire.ts";
import { IFF_UP, INFO, LINK, linkHeader, RTM } from "./link-wire.ts";

/** EEXIST if it exists, EOPNOTSUPP if the kernel has no IPIP. Loading its module creates a device named `tunl0`. */
export function createIpip(device: {
  readonly name: string;
  readonly mtu: number;
  readonly state: "up" | "down";
}): NetlinkRequest {
  return {
    action: `create link "${device.name}"`,
    type: RTM.newLink,
    flags: FLAG.create | FLAG.exclusive,
    write(writer) {
      const flags = device.state === "up" ? IFF_UP : 0;
      writer.raw(linkHeader(0, flags, flags));
      writer.u32(LINK.mtu, device.mtu);
      writer.text(LINK.name, device.name);
      const info = writer.openUnmarked(LINK.info);
      writer.bytes(INFO.kind, new TextEncoder().encode("ipip"));
      writer.close(info);
    },
  };
}
