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
import { type CallLogSurroundings, type LoggedContext, loggingCalls } from "../../log/call-log.ts";
import { requirePrevResult } from "../prev-result.ts";
import { type Bandwidth, decodeBandwidth } from "./bandwidth.ts";

export interface Surroundings extends CallLogSurroundings {
  /** Called by DEL only. */
  loadLinks(): Promise<LinkAccess>;
}

export function bandwidthPlugin(description: PluginDescription, surroundings: Surroundings): CniPlugin {
  const logged = loggingCalls(surroundings);
  return {
    ...description,
    add: logged(add),
    check: logged(check),
    del: logged(async (call, { log }) => {
      const { delShaping } = await import("./commands.ts");
      if (await delShaping(call, await surroundings.loadLinks())) log.changed({});
    }),
    gc: logged(async (call) => (await import("./commands.ts")).collectGarbage(call)),
    status: logged(async (call) => {
      decodeBandwidth(call.config);
      (await import("./status.ts")).requireShapingSupport();
    }),
  };
}

async function add(call: AddCall, { log }: LoggedContext): Promise<CniResult> {
  const bandwidth = decodeBandwidth(call.config);
  const result = requirePrevResult(call);
  if (isUnlimited(bandwidth)) return result;
  const shaped = (await import("./commands.ts")).addShaping(call, result, bandwidth);
  log.changed({ ingressRate: bandwidth.ingress?.rate, egressRate: bandwidth.egress?.rate });
  return shaped;
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
