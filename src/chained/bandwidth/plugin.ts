/**
 * The `bandwidth` plugin: a drop-in replacement for upstream's plugin of that name.
 *
 * It follows the plugin that creates the interface in the list, and limits the
 * container's traffic to the rates in the config or from the runtime. Most containers
 * have no rate: then it passes the result on, changes nothing and does not load the
 * code that talks to the kernel.
 */
import type { AddCall, CheckCall } from "../../cni/call.ts";
import type { PluginDescription } from "../../cni/plugin-description.ts";
import type { CniResult } from "../../cni/result.ts";
import type { CniPlugin } from "../../cni/serve.ts";
import type { LinkAccess } from "../../linux/rtnetlink/link-access.ts";
import { requirePrevResult } from "../prev-result.ts";
import { type Bandwidth, decodeBandwidth } from "./bandwidth.ts";

/** `loadLinks` is called by DEL only. */
export function bandwidthPlugin(description: PluginDescription, loadLinks: () => Promise<LinkAccess>): CniPlugin {
  return {
    ...description,
    add,
    check,
    del: async (call) => (await import("./commands.ts")).delShaping(call, await loadLinks()),
    gc: async (call) => (await import("./commands.ts")).collectGarbage(call),
    async status(call) {
      decodeBandwidth(call.config);
      (await import("./status.ts")).requireShapingSupport();
    },
  };
}

async function add(call: AddCall): Promise<CniResult> {
  const bandwidth = decodeBandwidth(call.config);
  const result = requirePrevResult(call);
  if (isUnlimited(bandwidth)) return result;
  return (await import("./commands.ts")).addShaping(call, result, bandwidth);
}

async function check(call: CheckCall): Promise<void> {
  const bandwidth = decodeBandwidth(call.config);
  const result = requirePrevResult(call);
  if (isUnlimited(bandwidth)) return;
  (await import("./check.ts")).checkShaping(call, result, bandwidth);
}

function isUnlimited({ ingress, egress }: Bandwidth): boolean {
  return ingress === undefined && egress === undefined;
}
