/** The installation as it is, and what its release had published. Reads only. */
import { identity } from "../../identity.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";
import type { KubeObject } from "../../release/kube-object.ts";
import { groupPath, objectPath } from "../../release/object-kinds.ts";
import { NETWORK_CONFIG_MAP } from "../../release/workloads/names.ts";
import { readObjects } from "../engine/observe-objects.ts";
import { FORMER_CANAL, FORMER_CONFIG_MAP, FORMER_CONTROLLERS, FORMER_ETCD_SECRET } from "../former-names.ts";
import { withoutServerFields } from "../merge/server-defaults.ts";
import { UNKNOWN_BASE } from "../merge/three-way.ts";
import { fieldsIn, itemsIn, named, textIn } from "../object-fields.ts";
import { podSpecOf } from "../pod-template.ts";

/** Manifests without the operator install there. */
export const NAMESPACE = "kube-system";

const APPS = `${groupPath("apps/v1")}/namespaces/${NAMESPACE}`;
const CORE = `${groupPath("v1")}/namespaces/${NAMESPACE}`;

export const PATHS = {
  /** The first that exists has the node agents. */
  daemonSets: [identity.nodeAgent, FORMER_CANAL.daemonSet, FORMER_CANAL.etcdDaemonSet].map(
    (name) => `${APPS}/daemonsets/${name}`,
  ),
  formerControllers: `${APPS}/deployments/${FORMER_CONTROLLERS}`,
  settings: `${CORE}/configmaps/${FORMER_CONFIG_MAP}`,
  canalSettings: `${CORE}/configmaps/${FORMER_CANAL.configMap}`,
  networkConfig: `${CORE}/configmaps/${NETWORK_CONFIG_MAP}`,
  etcdSecret: `${CORE}/secrets/${FORMER_ETCD_SECRET}`,
} as const;

/** By path: those that exist. */
export type LiveManifest = ReadonlyMap<string, Fields>;

export function daemonSetOf(live: LiveManifest): Fields | undefined {
  const found = PATHS.daemonSets.map((path) => live.get(path)).filter((each) => each !== undefined);
  return found.find((each) => named(itemsIn(podSpecOf(each), "containers"), identity.nodeAgent) !== undefined);
}

/** Whether its pods are those of an earlier release: only those of this one install the plugin themselves. */
export function isFormer(daemonSet: Fields): boolean {
  const install = named(itemsIn(podSpecOf(daemonSet), "initContainers"), "install");
  const command = install?.["command"];
  return !(Array.isArray(command) && command[0] === identity.nodeAgent);
}

/** The ConfigMap of an earlier release's settings. */
export function formerSettings(live: LiveManifest): Fields | undefined {
  const hasList = (path: string) => textIn(fieldsIn(live.get(path), "data"), "cni_network_config") !== undefined;
  return (
    [PATHS.canalSettings, PATHS.settings].filter(hasList).map((path) => live.get(path))[0] ?? live.get(PATHS.settings)
  );
}

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

export interface Base {
  readonly base: Fields | typeof UNKNOWN_BASE;
  readonly source: "stock" | "last applied" | "unknown";
}

export function published(object: KubeObject): Base {
  return { base: object, source: "stock" };
}

/** What was installed, of one object. */
export function baseOf(live: Fields, stock: readonly KubeObject[] | undefined): Base {
  const { kind, metadata } = live;
  const name = textIn(metadata, "name");
  const found = stock?.find((each) => each.kind === kind && each.metadata.name === name);
  if (found !== undefined) return published(found);
  const applied = lastApplied(live);
  return applied === undefined ? { base: UNKNOWN_BASE, source: "unknown" } : { base: applied, source: "last applied" };
}

function lastApplied(live: Fields): Fields | undefined {
  const text = textIn(fieldsIn(live, "metadata", "annotations"), LAST_APPLIED);
  if (text === undefined) return undefined;
  try {
    const value = parseJson(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Comparable with a manifest. */
export function comparable(live: Fields, base: Fields | typeof UNKNOWN_BASE, release?: KubeObject): Fields {
  return withoutServerFields(live, base === UNKNOWN_BASE ? release : base) as Fields;
}

export function liveOf(live: LiveManifest, object: KubeObject): Fields | undefined {
  return live.get(objectPath(object));
}

const RBAC = "rbac.authorization.k8s.io/v1";
const NAME = "canal-flannel";

const FLANNEL_BINDING = `${groupPath(RBAC)}/clusterrolebindings/${NAME}`;

/** None if there is no flannel. */
export function flannelBinding(live: LiveManifest): readonly KubeObject[] {
  const binding = live.get(FLANNEL_BINDING);
  if (binding === undefined) return [];
  const subjects = [{ kind: "ServiceAccount", name: identity.nodeAgent, namespace: NAMESPACE }];
  return [
    {
      apiVersion: RBAC,
      kind: "ClusterRoleBinding",
      metadata: { name: NAME },
      roleRef: fieldsIn(binding, "roleRef"),
      subjects,
    },
  ];
}

/** Reads the objects of an installation from a manifest. */
export async function readLiveManifest(objects: ClusterObjects, release: readonly KubeObject[]): Promise<LiveManifest> {
  const { daemonSets, ...others } = PATHS;
  const paths = new Set([...daemonSets, ...Object.values(others), FLANNEL_BINDING, ...release.map(objectPath)]);
  const found = await readObjects(objects, [...paths]);
  const live = new Map([...found].flatMap(([path, object]) => (object === undefined ? [] : [[path, object] as const])));
  return live;
}
