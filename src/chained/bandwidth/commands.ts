/** The parts of ADD, DEL and GC that talk to the kernel. */
import type { AddCall, DelCall, GcCall } from "../../cni/call.ts";
import type { CniResult } from "../../cni/result.ts";
import { PluginError } from "../../errors.ts";
import { formatMac } from "../../ip/mac.ts";
import { closeNetlinkSocket, openNetlinkSocket, ownSockets } from "../../linux/netlink-socket.ts";
import { listLinks } from "../../linux/rtnetlink/link.ts";
import type { LinkAccess } from "../../linux/rtnetlink/link-access.ts";
import { withRouteSocket } from "../../linux/rtnetlink/route-socket.ts";
import type { Bandwidth } from "./bandwidth.ts";
import { findHostVeth, requireHostVeth } from "./host-veth.ts";
import { ifbNamesOf, isStrayIfb } from "./ifb-identity.ts";
import { applyShaping, detachShaping, findIfbs, removeShaping } from "./shaping.ts";

/** Returns the result of the previous plugins plus the device that shapes what the container sends. */
export function addShaping(call: AddCall, result: CniResult, bandwidth: Bandwidth): CniResult {
  return withRouteSocket(ownSockets, (socket) => {
    const at = { veth: requireHostVeth(socket, call, result), names: ifbNamesOf(call) };
    const ifb = applyShaping(socket, at, bandwidth);
    if (ifb === undefined) return result;
    const shaper = { name: ifb.name, mac: formatMac(ifb.mac) };
    return { ...result, interfaces: [...result.interfaces, shaper] };
  });
}

/**
 * Does not use the config: what ADD created is removed even if the config has changed since. Returns whether there was
 * something to remove.
 */
export async function delShaping(call: DelCall, links: LinkAccess): Promise<boolean> {
  const socket = openNetlinkSocket("route");
  try {
    const ifbs = findIfbs(socket, ifbNamesOf(call));
    const wasShaped = detachShaping(socket, findHostVeth(socket, call), ifbs);
    const refusals = await Promise.all(ifbs.map((ifb) => links.remove(socket, ifb)));
    for (const refusal of refusals) if (refusal !== undefined) throw refusal;
    return wasShaped || ifbs.length > 0;
  } finally {
    closeNetlinkSocket(socket);
  }
}

/** Only egress shaping leaves something behind: the bucket for ingress disappears with the container's link. */
export function collectGarbage({ networkName, validAttachments }: GcCall): void {
  if (validAttachments === undefined) return;
  const failures: string[] = [];
  withRouteSocket(ownSockets, (socket) => {
    for (const link of listLinks(socket)) {
      if (!isStrayIfb(link, networkName, validAttachments)) continue;
      try {
        removeShaping(socket, undefined, [link]);
      } catch (failure) {
        failures.push(failure instanceof Error ? failure.message : String(failure));
      }
    }
  });
  if (failures.length > 0)
    throw new PluginError("kernel-refused", `Cannot collect all garbage: ${failures.join("; ")}`);
}
