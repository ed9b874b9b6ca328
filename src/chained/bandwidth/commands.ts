/** ADD, DEL and GC once it is known that the kernel must be asked. */
import type { AddCall, DelCall, GcCall } from "../../cni/call.ts";
import type { CniResult } from "../../cni/result.ts";
import { PluginError } from "../../errors.ts";
import { formatMac } from "../../ip/mac.ts";
import { listLinks } from "../../linux/rtnetlink/link.ts";
import { removeLinkTogether } from "../../linux/rtnetlink/link-removal.ts";
import type { Bandwidth } from "./bandwidth.ts";
import { findHostVeth, requireHostVeth } from "./host-veth.ts";
import { ifbNamesOf, isStrayIfb } from "./ifb-identity.ts";
import { withRouteSocket } from "./route-socket.ts";
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
export function delShaping(call: DelCall): void {
  withRouteSocket((socket) => {
    removeShaping(socket, findHostVeth(socket, call), findIfbs(socket, ifbNamesOf(call)));
  });
}

/** As `delShaping`, in a process that serves other calls meanwhile. */
export async function delShapingAside(call: DelCall): Promise<void> {
  const ifbs = withRouteSocket((socket) => {
    const found = findIfbs(socket, ifbNamesOf(call));
    detachShaping(socket, findHostVeth(socket, call), found);
    return found;
  });
  const refusals = await Promise.all(ifbs.map(removeLinkTogether));
  for (const refusal of refusals) if (refusal !== undefined) throw refusal;
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
