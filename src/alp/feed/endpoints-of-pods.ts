/** Which endpoint of this node is that of each pod with a sidecar? Pure. */
import type { LocalEndpoint } from "../../policy/compile/workload-endpoints.ts";
import type { SidecarVolume } from "./sidecar-volumes.ts";

/** The key of the endpoint, by the UID of the pod. */
export type PodEndpoints = ReadonlyMap<string, string>;

/**
 * Of several endpoints of a pod the first one. `hasPodUids`: the UID of an endpoint is that of its pod; otherwise only
 * names are compared, and none of two pods with the same name has the endpoint: one of them is gone, and its sidecar must
 * not speak for the other.
 */
export function endpointsOfPods(
  volumes: Iterable<SidecarVolume>,
  endpoints: ReadonlyMap<string, LocalEndpoint>,
  { hasPodUids }: { readonly hasPodUids: boolean },
): PodEndpoints {
  const ofName = endpointsByName(endpoints);
  const found = new Map<string, string>();
  for (const sameName of Map.groupBy(volumes, nameOf).values()) {
    const [first] = sameName;
    const known = first === undefined ? undefined : ofName.get(nameOf(first));
    if (known === undefined) continue;
    const owners = hasPodUids ? sameName.filter(({ uid }) => uid === known.uid) : sameName;
    const [owner, ...others] = owners;
    if (owner !== undefined && others.length === 0) found.set(owner.uid, known.key);
  }
  return found;
}

interface KnownEndpoint {
  readonly key: string;
  readonly uid: string | undefined;
}

function endpointsByName(endpoints: ReadonlyMap<string, LocalEndpoint>): ReadonlyMap<string, KnownEndpoint> {
  const ofName = new Map<string, KnownEndpoint>();
  for (const [key, { endpoint }] of endpoints) {
    const { metadata, spec } = endpoint;
    if (spec.pod === undefined) continue;
    const name = nameOf({ namespace: metadata.namespace ?? "", pod: spec.pod });
    const before = ofName.get(name);
    if (before === undefined || key < before.key) ofName.set(name, { key, uid: metadata.uid });
  }
  return ofName;
}

function nameOf({ namespace, pod }: Pick<SidecarVolume, "namespace" | "pod">): string {
  return `${namespace}/${pod}`;
}
