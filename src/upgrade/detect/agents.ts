/** The DaemonSets that run the node agents, and what they show. Pure. */
import { identity } from "../../identity.ts";
import type { Fields } from "../../kube/objects.ts";
import { FORMER_CANAL, FORMER_CONFIG_MAP } from "../former-names.ts";
import { parseNetworkList, pluginsOf } from "../live-network-configs.ts";
import type { ClusterSnapshot } from "./snapshot.ts";
import type { Workload } from "./workload.ts";

export function agentsOf({ workloads }: ClusterSnapshot): readonly Workload[] {
  return workloads.filter(({ kind }) => kind === "DaemonSet");
}

/** `VENDOR_NETWORKING_BACKEND` */
export function productVariable(name: string): string {
  return `${identity.environmentPrefix}${name}`;
}

/** Whether it is that of an earlier release, which runs another networking plugin in its pods. */
export function isCanal({ name, containers }: Workload): boolean {
  const names: readonly string[] = [FORMER_CANAL.daemonSet, FORMER_CANAL.etcdDaemonSet];
  return names.includes(name) || containers.some((container) => container.name === "kube-flannel");
}

/** The selector of a workload never changes: that of this product has these labels since its first release. */
export function hasPresentLayout({ selector }: Workload): boolean {
  return selector["app.kubernetes.io/name"] !== undefined;
}

/** The product's plugin in the network config beside the agents, also as a delegate. */
export function pluginBeside({ configMaps }: ClusterSnapshot, namespace: string): Fields | undefined {
  const texts = [
    configMaps.get(`${namespace}/cni-config`)?.["config"],
    configMaps.get(`${namespace}/${FORMER_CONFIG_MAP}`)?.["cni_network_config"],
    configMaps.get(`${namespace}/${FORMER_CANAL.configMap}`)?.["cni_network_config"],
  ];
  for (const text of texts) {
    const list = typeof text === "string" ? parseNetworkList(text) : undefined;
    const plugin =
      list && [list, ...pluginsOf(list)].flatMap(withDelegate).find(({ type }) => type === identity.product);
    if (plugin !== undefined) return plugin;
  }
  return undefined;
}

function withDelegate(plugin: Fields): readonly Fields[] {
  const delegate = plugin["delegate"];
  return typeof delegate === "object" && delegate !== null ? [plugin, delegate as Fields] : [plugin];
}
