/** Reads the pods of a mesh, and what controls them. */
import * as v from "valibot";
import { FORMER_SIDECAR, identity } from "../../identity.ts";
import type { ClusterObjects } from "../../kube/objects.ts";
import { decodeShape } from "../../model/shape.ts";
import { SIDECAR_ANNOTATION } from "../../model/sidecar-annotation.ts";
import { type MeshPod, type Owner, ownerKey } from "./mesh-pods.ts";
import { PROXY_CONTAINER } from "./sidecar-parts.ts";

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
        hasEarlierSidecar: containers.some(({ name }) => name === FORMER_SIDECAR),
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

function pathOf(group: string, namespace: Namespace, plural: string): string {
  return namespace === undefined ? `${group}/${plural}` : `${group}/namespaces/${namespace}/${plural}`;
}
