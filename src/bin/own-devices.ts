import { identity } from "../identity.ts";

const TUNNELS: ReadonlySet<string> = new Set([identity.vxlanDevice, identity.vxlanDeviceIpv6, "tunl0"]);

/** Whether it is the link of a pod or of a tunnel: its addresses and its MTU are not those of the host. */
export function isOwnDevice(name: string): boolean {
  return name.startsWith(identity.interfacePrefix) || TUNNELS.has(name);
}
