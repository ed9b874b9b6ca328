/**
 * host-local with the range of the Node: replaces `usePodCidr` and `usePodCidrIPv6` in
 * what host-local reads. Only ADD and STATUS read the Node, once; everything else
 * works without the orchestrator's API.
 */
import type { CniCall } from "../cni/call.ts";
import type { JsonObject } from "../cni/json.ts";
import { kubeAccess } from "../config/kube-access.ts";
import { PluginError } from "../errors.ts";
import { type NodeRanges, type PodCidrPlace, withAnyAddress, withPodCidrs } from "../ipam/hostlocal/pod-cidr.ts";
import { readOrchestratorNode } from "../kube/orchestrator-node.ts";
import { quoted } from "../quote.ts";
import type { IpamPlugin } from "./ipam-plugin.ts";
import type { Session } from "./session.ts";

/** The same plugin for a config with such a place. */
export function servingPodCidrs(ipam: IpamPlugin, place: PodCidrPlace, session: Session): IpamPlugin {
  const ofNode = async <Call extends CniCall>(call: Call) =>
    withConfig(call, withPodCidrs(call.config, await readNodeRanges(place, session)));
  const ofAny = <Call extends CniCall>(call: Call) => withConfig(call, withAnyAddress(call.config));
  return {
    add: async (call, signal) => ipam.add(await ofNode(call), signal),
    status: async (call, signal) => ipam.status(await ofNode(call), signal),
    del: (call, signal) => ipam.del(ofAny(call), signal),
    check: (call, signal) => ipam.check(ofAny(call), signal),
    gc: (call, signal) => ipam.gc(ofAny(call), signal),
  };
}

/** For a plugin in this process and for one that is executed. */
function withConfig<Call extends CniCall>(call: Call, config: JsonObject): Call {
  return { ...call, config, stdin: new TextEncoder().encode(JSON.stringify(config)) };
}

async function readNodeRanges(place: PodCidrPlace, session: Session): Promise<NodeRanges> {
  const { config, surroundings, signal, log } = session;
  const node = config.kubernetes.nodeName ?? session.node;
  const access = kubeAccess(config);
  if (access === undefined) {
    throw cannotUse(place, "config-invalid", {
      state: "the config does not give access to the Kubernetes API",
      details: 'set "kubernetes.kubeconfig" to a kubeconfig file, or write the subnet of this node instead',
    });
  }
  const { environment = {}, elapsed, now, host } = surroundings;
  const client = await host.openKubeClient(access, { environment, elapsed, now, warn: (text) => log.warning(text) });
  try {
    const found = await readOrchestratorNode(client, node, signal);
    if (found === undefined) {
      throw cannotUse(place, "resource-missing", {
        state: `there is no Node "${node}"`,
        details: 'set "kubernetes.node_name" to the name of the Node of this host',
      });
    }
    return { node, podCidrs: found.podCidrs };
  } finally {
    await client.close();
  }
}

function cannotUse(
  { place, word }: PodCidrPlace,
  kind: "config-invalid" | "resource-missing",
  { state, details }: { readonly state: string; readonly details: string },
): PluginError {
  return new PluginError(kind, `Cannot use "${place}" ${quoted(word)}: ${state}`, { details });
}
