/** Reads what `alp status` reports: pods and what controls them, policies with `http` rules, and the mesh's filters. */
import * as v from "valibot";
import type { Datastore } from "../../datastore/datastore.ts";
import { identity } from "../../identity.ts";
import type { ClusterObjects } from "../../kube/objects.ts";
import { PROXY_CONTAINER } from "../../mesh/sidecar-parts.ts";
import { decodeShape } from "../../model/shape.ts";
import { SIDECAR_ANNOTATION } from "../../model/sidecar-annotation.ts";
import { policiesOf } from "../../policy/judge/judge.ts";
import type { AnyPolicy } from "../../policy/judge/resources.ts";
import { readPolicy } from "../policy/read-resources.ts";
import { type MeshPod, type Owner, ownerKey } from "./sidecar-workloads.ts";

/** `undefined`: all namespaces. */
type Namespace = string | undefined;

const container = v.object({ name: v.string(), image: v.optional(v.string(), "") });
const metadata = v.object({
  name: v.string(),
  namespace: v.string(),
  labels: v.optional(v.record(v.string(), v.string()), {}),
  annotations: v.optional(v.record(v.string(), v.string()), {}),
  deletionTimestamp: v.optional(v.string()),
  ownerReferences: v.optional(
    v.array(v.object({ kind: v.string(), name: v.string(), controller: v.optional(v.boolean(), false) })),
    [],
  ),
});
const podShape = v.object({
  metadata,
  spec: v.object({
    containers: v.array(container),
    initContainers: v.optional(v.array(container), []),
  }),
  status: v.optional(v.object({ phase: v.optional(v.string(), "Unknown") }), {}),
});

/** Without those that have ended or are being deleted. */
export async function readMeshPods(
  objects: ClusterObjects,
  namespace: Namespace,
  reportedOf: (pod: string) => string | undefined,
): Promise<readonly MeshPod[]> {
  const items = await objects.list(pathOf("/api/v1", namespace, "pods"));
  return items.flatMap((item): readonly MeshPod[] => {
    const decoded = decodeShape(podShape, item);
    if (!decoded.ok) return [];
    const { metadata: own, spec, status } = decoded.value;
    const { phase = "Unknown" } = status;
    if (own.deletionTimestamp !== undefined || phase === "Succeeded" || phase === "Failed") return [];
    const containers = [...spec.containers, ...spec.initContainers];
    const sidecar = containers.find(({ name }) => name === identity.sidecar);
    const owner = controllerOf(own);
    const reported = own.annotations[SIDECAR_ANNOTATION] ?? reportedOf(`${own.namespace}/${own.name}`);
    return [
      {
        namespace: own.namespace,
        name: own.name,
        labels: own.labels,
        hasProxy: containers.some(({ name }) => name === PROXY_CONTAINER),
        hasStarted: phase === "Running",
        ...(owner === undefined ? {} : { owner }),
        ...(sidecar === undefined ? {} : { sidecarImage: sidecar.image }),
        ...(reported === undefined ? {} : { reported }),
      },
    ];
  });
}

/** What controls the ReplicaSets and Jobs of these pods. */
export async function readOwners(
  objects: ClusterObjects,
  namespace: Namespace,
  pods: readonly MeshPod[],
): Promise<ReadonlyMap<string, Owner>> {
  const kinds = new Set(pods.flatMap(({ owner }) => owner?.kind ?? []));
  const owners = new Map<string, Owner>();
  for (const { kind, group, plural } of INTERMEDIATE) {
    if (!kinds.has(kind)) continue;
    for (const item of await objects.list(pathOf(group, namespace, plural))) {
      const decoded = decodeShape(v.object({ metadata }), item);
      const owner = decoded.ok ? controllerOf(decoded.value.metadata) : undefined;
      if (!decoded.ok || owner === undefined) continue;
      const { namespace: own, name } = decoded.value.metadata;
      owners.set(ownerKey(own, { kind, name }), owner);
    }
  }
  return owners;
}

const INTERMEDIATE = [
  { kind: "ReplicaSet", group: "/apis/apps/v1", plural: "replicasets" },
  { kind: "Job", group: "/apis/batch/v1", plural: "jobs" },
] as const;

function controllerOf({ ownerReferences }: v.InferOutput<typeof metadata>): Owner | undefined {
  const owner = ownerReferences.find(({ controller }) => controller);
  // The kubelet's own pods, from files of the node.
  return owner === undefined || owner.kind === "Node" ? undefined : { kind: owner.kind, name: owner.name };
}

export interface HttpPolicies {
  /** By `NAMESPACE/POD`: the policies with `http` rules that select it. */
  readonly policies: ReadonlyMap<string, readonly string[]>;
  /** By `NAMESPACE/POD`: the release of the sidecar, on the endpoints of an etcd datastore. */
  readonly reported: ReadonlyMap<string, string>;
}

export async function readHttpPolicies(store: Datastore): Promise<HttpPolicies> {
  const { resources } = await readPolicy(store);
  const hasHttp = ({ spec }: AnyPolicy) => (spec.ingress ?? []).some(({ http }) => http !== undefined);
  const withHttp = {
    ...resources,
    networkPolicies: resources.networkPolicies.filter(hasHttp),
    globalNetworkPolicies: resources.globalNetworkPolicies.filter(hasHttp),
  };
  const policies = new Map<string, readonly string[]>();
  const reported = new Map<string, string>();
  for (const endpoint of resources.endpoints) {
    const { namespace = "", annotations } = endpoint.metadata;
    const pod = `${namespace}/${endpoint.spec.pod ?? ""}`;
    const release = annotations?.[SIDECAR_ANNOTATION];
    if (release !== undefined) reported.set(pod, release);
    const selecting = policiesOf(endpoint, "ingress", withHttp).map(titleOf);
    if (selecting.length > 0) policies.set(pod, selecting);
  }
  return { policies, reported };
}

function titleOf({ kind, metadata: { name, namespace } }: AnyPolicy): string {
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}

/** In the namespace of the mesh it applies to all. */
const MESH_NAMESPACE = "istio-system";

const filterShape = v.object({
  metadata: v.object({ namespace: v.string() }),
  spec: v.object({
    workloadSelector: v.optional(v.object({ labels: v.optional(v.record(v.string(), v.string()), {}) }), {}),
    configPatches: v.optional(
      v.array(v.object({ applyTo: v.optional(v.string()), patch: v.optional(v.unknown()) })),
      [],
    ),
  }),
});

/** Whether a proxy of the mesh asks the sidecar about requests: by filters of any name, as `deploy/alp/envoy-filter.yaml` has them. */
export async function readFiltered(objects: ClusterObjects): Promise<(pod: MeshPod) => boolean> {
  const items = await objects.list("/apis/networking.istio.io/v1alpha3/envoyfilters");
  const filters = items.flatMap((item) => {
    const decoded = decodeShape(filterShape, item);
    if (!decoded.ok || !decoded.value.spec.configPatches.some(asksSidecar)) return [];
    const { metadata: own, spec } = decoded.value;
    return [{ namespace: own.namespace, labels: Object.entries(spec.workloadSelector.labels ?? {}) }];
  });
  return (pod) =>
    filters.some(
      ({ namespace, labels }) =>
        (namespace === MESH_NAMESPACE || namespace === pod.namespace) &&
        labels.every(([name, value]) => pod.labels[name] === value),
    );
}

const QUESTION = `"cluster_name":${JSON.stringify(identity.sidecar)}`;

function asksSidecar({ applyTo, patch }: { readonly applyTo?: string | undefined; readonly patch?: unknown }): boolean {
  return applyTo === "HTTP_FILTER" && JSON.stringify(patch ?? null).includes(QUESTION);
}

function pathOf(group: string, namespace: Namespace, plural: string): string {
  return namespace === undefined ? `${group}/${plural}` : `${group}/namespaces/${namespace}/${plural}`;
}
