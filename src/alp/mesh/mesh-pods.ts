/** Pods of a mesh, as far as their sidecar matters, and what controls them. Pure. */
/** A pod that runs, or is about to. */
export interface MeshPod {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** `ReplicaSet web-5d4f`: what controls it. Absent for a bare pod. */
  readonly owner?: Owner;
  /** Of the container of the sidecar; absent: it has none. */
  readonly sidecarImage?: string;
  /** A sidecar of releases up to v3.28, whose container has another name. */
  readonly hasEarlierSidecar: boolean;
  /** The release that reports to the node agent; absent: none does. */
  readonly reported?: string;
  /** That of the mesh. A pod can have an Envoy of its own instead: nothing of the cluster shows what that asks. */
  readonly hasProxy: boolean;
  /** Its containers were started once. */
  readonly hasStarted: boolean;
}

export interface Owner {
  readonly kind: string;
  readonly name: string;
}

export function ownerKey(namespace: string, { kind, name }: Owner): string {
  return `${namespace}/${kind}/${name}`;
}

/** What controls its ReplicaSet or Job, else what controls it, else the pod. */
export function topOwner({ namespace, name, owner }: MeshPod, owners: ReadonlyMap<string, Owner>): Owner {
  if (owner === undefined) return { kind: "Pod", name };
  return owners.get(ownerKey(namespace, owner)) ?? owner;
}

/** As it reports itself; by the tag of its image, if it does not. */
export function releaseOf({ reported, sidecarImage = "" }: MeshPod): string {
  return reported ?? /:([^/:@]+)(?:@.*)?$/.exec(sidecarImage)?.[1] ?? "unknown";
}
