/** The pods that are connected to the network of the cluster. Pure. */
import * as v from "valibot";
import { identity } from "../../identity.ts";
import { decodeShape } from "../../model/shape.ts";

const podShape = v.object({
  metadata: v.object({
    name: v.string(),
    namespace: v.string(),
    ownerReferences: v.optional(v.array(v.object({ kind: v.string(), name: v.string() })), []),
  }),
  spec: v.object({ hostNetwork: v.optional(v.boolean(), false) }),
  status: v.optional(v.object({ phase: v.optional(v.string(), ""), podIP: v.optional(v.string(), "") }), {}),
});

export interface NetworkPod {
  /** `default/web` */
  readonly name: string;
  /** The command that ends it and whatever would start it again. */
  readonly removal: string;
}

/** Ours go with the installation. */
const OWN_NAMESPACES = new Set<string>([identity.systemNamespace, identity.operator]);

/** Without those that use the network of their host, that have ended, or that are ours. */
export function networkPods(pods: readonly unknown[]): readonly NetworkPod[] {
  return pods.flatMap((item) => {
    const decoded = decodeShape(podShape, item);
    if (!decoded.ok) return [];
    const { metadata, spec, status } = decoded.value;
    const hasEnded = status.phase === "Succeeded" || status.phase === "Failed";
    if (spec.hostNetwork || hasEnded || !status.podIP || OWN_NAMESPACES.has(metadata.namespace)) return [];
    const { namespace, name, ownerReferences } = metadata;
    return [
      {
        name: `${namespace}/${name}`,
        removal: `kubectl --namespace ${namespace} ${removalOf(name, ownerReferences[0])}`,
      },
    ];
  });
}

/** A ReplicaSet of a Deployment has its name and a hash. */
function removalOf(pod: string, owner: { readonly kind: string; readonly name: string } | undefined): string {
  switch (owner?.kind) {
    case undefined:
    case "Node":
      return `delete pod/${pod}`;
    case "ReplicaSet":
      return `scale deployment/${owner.name.replace(/-[^-]+$/, "")} --replicas=0`;
    case "StatefulSet":
    case "ReplicationController":
      return `scale ${owner.kind.toLowerCase()}/${owner.name} --replicas=0`;
    default:
      return `delete ${owner?.kind.toLowerCase()}/${owner?.name}`;
  }
}
