/**
 * The `bandwidth` plugin: drop-in for upstream's plugin of that name.
 *
 * It stands in a list behind the plugin that makes the interface and holds the
 * container's traffic to the rates that the config or the runtime names. Without
 * any rate it passes the result on and touches nothing.
 */
import type { AddCall, CheckCall, DelCall, GcCall } from "../../cni/call.ts";
import type { PluginFace } from "../../cni/face.ts";
import type { CniResult } from "../../cni/result.ts";
import type { CniPlugin } from "../../cni/serve.ts";
import { PluginError } from "../../errors.ts";
import { formatMac } from "../../ip/mac.ts";
import { closeNetlinkSocket, type NetlinkSocket, openNetlinkSocket } from "../../linux/netlink-socket.ts";
import { listLinks } from "../../linux/rtnetlink/link.ts";
import { requirePrevResult } from "../prev-result.ts";
import { type Bandwidth, decodeBandwidth } from "./bandwidth.ts";
import { checkShaping } from "./check.ts";
import { findHostVeth, requireHostVeth } from "./host-veth.ts";
import { ifbNamesOf, isStrayIfb } from "./ifb-identity.ts";
import { applyShaping, findIfbs, removeShaping } from "./shaping.ts";
import { requireShapingMeans } from "./status.ts";

export function bandwidthPlugin(face: PluginFace): CniPlugin {
  return {
    ...face,
    add: async (call) => add(call),
    del: async (call) => withSocket((socket) => del(socket, call)),
    check: async (call) => check(call),
    gc: async (call) => withSocket((socket) => collectGarbage(socket, call)),
    status: async (call) => {
      decodeBandwidth(call.config);
      withSocket(requireShapingMeans);
    },
  };
}

function add(call: AddCall): CniResult {
  const bandwidth = decodeBandwidth(call.config);
  const result = requirePrevResult(call);
  if (isUnlimited(bandwidth)) return result;

  return withSocket((socket) => {
    const at = { veth: requireHostVeth(socket, call, result), names: ifbNamesOf(call) };
    const ifb = applyShaping(socket, at, bandwidth);
    if (ifb === undefined) return result;
    const shaper = { name: ifb.name, mac: formatMac(ifb.mac) };
    return { ...result, interfaces: [...result.interfaces, shaper] };
  });
}

function check(call: CheckCall): void {
  const bandwidth = decodeBandwidth(call.config);
  const result = requirePrevResult(call);
  if (isUnlimited(bandwidth)) return;

  withSocket((socket) => {
    const at = { veth: requireHostVeth(socket, call, result), names: ifbNamesOf(call) };
    checkShaping(socket, call, at, bandwidth);
  });
}

/** Asks nothing of the config: what was made is removed, whatever the config says now. */
function del(socket: NetlinkSocket, call: DelCall): void {
  removeShaping(socket, findHostVeth(socket, call), findIfbs(socket, ifbNamesOf(call)));
}

/** What shapes the ingress alone needs no collecting: it lives and dies with the container's own link. */
function collectGarbage(socket: NetlinkSocket, { networkName, validAttachments }: GcCall): void {
  if (validAttachments === undefined) return;
  const failures: string[] = [];
  for (const link of listLinks(socket)) {
    if (!isStrayIfb(link, networkName, validAttachments)) continue;
    try {
      removeShaping(socket, undefined, [link]);
    } catch (failure) {
      failures.push(failure instanceof Error ? failure.message : String(failure));
    }
  }
  if (failures.length > 0)
    throw new PluginError("kernel-refused", `Cannot collect all garbage: ${failures.join("; ")}`);
}

function isUnlimited({ ingress, egress }: Bandwidth): boolean {
  return ingress === undefined && egress === undefined;
}

function withSocket<Value>(work: (socket: NetlinkSocket) => Value): Value {
  const socket = openNetlinkSocket("route");
  try {
    return work(socket);
  } finally {
    closeNetlinkSocket(socket);
  }
}
