/** Which of the addresses in the previous plugin's result are the container's: one per family. Pure. */
import type { CniIp, CniResult } from "../../cni/result.ts";
import type { Family } from "../../ip/address.ts";
import { type InterfaceAddress, parseInterfaceAddress } from "../../ip/prefix.ts";

export type PodAddresses = { readonly [Each in Family]?: InterfaceAddress };

/** The first of each family that is on the container's interface, or on none that the result tells. */
export function podAddresses(result: CniResult, ifname: string): PodAddresses {
  const found: { [Each in Family]?: InterfaceAddress } = {};
  for (const ip of result.ips) {
    if (!isOfContainer(ip, result, ifname)) continue;
    const parsed = parseInterfaceAddress(ip.address);
    if (parsed !== undefined) found[parsed.address.family] ??= parsed;
  }
  return found;
}

function isOfContainer(ip: CniIp, result: CniResult, ifname: string): boolean {
  const link = ip.interface === undefined ? undefined : result.interfaces[ip.interface];
  return link === undefined || (link.name === ifname && link.sandbox !== undefined && link.sandbox !== "");
}
