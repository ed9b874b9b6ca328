import { identity } from "../../identity.ts";

const TUNNELS: ReadonlySet<string> = new Set([identity.vxlanDevice, identity.vxlanDeviceIpv6, "tunl0"]);

/** Whether it is the link of a pod or of a tunnel: its addresses and its MTU are not those of the host. */
export function isOwnDevice(name: string): boolean {
  return name.startsWith(identity.interfacePrefix) || TUNNELS.has(name);
}

/**
 * The group of host links whose pods may use further sources. It shows which links need elements in the table after
 * another program has flushed it, at no cost: it is set and read with the rest of the link.
 */
export const ALLOWED_SOURCES_GROUP = 5_459_014;
