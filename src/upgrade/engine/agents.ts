/** The DaemonSet whose pods are the node agents. */
import { identity } from "../../identity.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { groupPath } from "../../release/object-kinds.ts";
import { FORMER_CANAL } from "../former-names.ts";
import { itemsIn, named, textIn } from "../object-fields.ts";
import { podSpecOf } from "../pod-template.ts";

export function daemonSetPath(namespace: string, name: string): string {
  return `${groupPath("apps/v1")}/namespaces/${namespace}/daemonsets/${name}`;
}

/** `undefined` if there is none. An upgraded one with flannel keeps its name. */
export async function agentsPath(objects: ClusterObjects, namespace: string): Promise<string | undefined> {
  for (const name of [identity.nodeAgent, FORMER_CANAL.daemonSet, FORMER_CANAL.etcdDaemonSet]) {
    const path = daemonSetPath(namespace, name);
    const daemonSet = await objects.read(path);
    if (agentImage(daemonSet) !== undefined) return path;
  }
  return undefined;
}

export function agentImage(daemonSet: Fields | undefined): string | undefined {
  return textIn(named(itemsIn(podSpecOf(daemonSet), "containers"), identity.nodeAgent), "image");
}
