/** ADD, DEL and GC once it is known that the kernel must be asked. */
import type { AddCall, DelCall, GcCall } from "../../cni/call.ts";
import type { CniResult } from "../../cni/result.ts";
import { PluginError } from "../../errors.ts";
import { formatMac } from "../../ip/mac.ts";
import { closeNetlinkSocket, openNetlinkSocket } from "../../linux/netlink-socket.ts";
import { listLinks } from "../../linux/rtnetlink/link.ts";
import type { LinkAccess } from "../../linux/rtnetlink/link-access.ts";
import { withRouteSocket } from "../../linux/rtnetlink/route-socket.ts";
import type { Bandwidth } from "./bandwidth.ts";
import { findHostVeth, requireHostVeth } from "./host-veth.ts";
import { ifbNamesOf, isStrayIfb } from "./ifb-identity.ts";
import { applyShaping, detachShaping, findIfbs, removeShaping } from "./shaping.ts";

/** The result of the plugins before, with the device that shapes what the container sends. */
export function addShaping(call: AddCall, result: CniResult, bandwidth: Bandwidth): CniResult {
  return withRouteSocket((socket) => {
    const at = { veth: requireHostVeth(socket, call, result), names: ifbNamesOf(call) };
    const ifb = applyShaping(socket, at, bandwidth);
    if (ifb === undefined) return result;
    const shaper = { name: ifb.name, mac: formatMac(ifb.mac) };
    return { ...result, interfaces: [...result.interfaces, shaper] };
  });
}

/** Asks nothing of the config: what was made is removed, whatever the config says now. */
export async function delShaping(call: DelCall, links: LinkAccess): Promise<void> {
  const socket = openNetlinkSocket("route");
  try {
    const ifbs = findIfbs(socket, ifbNamesOf(call));
    detachShaping(socket, findHostVeth(socket, call), ifbs);
    const refusals = await Promise.all(ifbs.map((ifb) => links.remove(socket, ifb)));
    for (const refusal of refusals) if (refusal !== undefined) throw refusal;
  } finally {
    closeNetlinkSocket(socket);
  }
}

/** What shapes the ingress alone needs no collecting: it lives and dies with the container's own link. */
export function collectGarbage({ networkName, validAttachments }: GcCall): void {
  if (validAttachments === undefined) return;
  const failures: string[] = [];
  withRouteSocket((socket) => {
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
