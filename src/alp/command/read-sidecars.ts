/** Reads what `alp status` reports besides pods: policies with `http` rules, and the mesh's filters. */
import * as v from "valibot";
import type { Datastore } from "../../datastore/datastore.ts";
import { identity } from "../../identity.ts";
import type { ClusterObjects } from "../../kube/objects.ts";
import { decodeShape } from "../../model/shape.ts";
import { SIDECAR_ANNOTATION } from "../../model/sidecar-annotation.ts";
import { policiesOf } from "../../policy/judge/judge.ts";
import type { AnyPolicy } from "../../policy/judge/resources.ts";
import { readPolicy } from "../../policy/read-resources.ts";
import type { MeshPod } from "../mesh/mesh-pods.ts";

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
