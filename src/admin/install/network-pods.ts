/** The pods that are connected to the network of the cluster. Pure. */
import * as v from "valibot";
import { identity } from "../../identity.ts";
import { decodeShape } from "../../model/shape.ts";

const podShape = v.object({
  metadata: v.object({ name: v.string(), namespace: v.string() }),
  spec: v.object({ hostNetwork: v.optional(v.boolean(), false) }),
  status: v.optional(v.object({ phase: v.optional(v.string(), ""), podIP: v.optional(v.string(), "") }), {}),
});

/** Ours go with the installation. */
const OWN_NAMESPACES = new Set<string>([identity.systemNamespace, identity.operator]);

/** `default/web`; without those that use the network of their host, that have ended, or that are ours. */
export function networkPods(pods: readonly unknown[]): readonly string[] {
  return pods.flatMap((item) => {
    const decoded = decodeShape(podShape, item);
    if (!decoded.ok) return [];
    const { metadata, spec, status } = decoded.value;
    const hasEnded = status.phase === "Succeeded" || status.phase === "Failed";
    if (spec.hostNetwork || hasEnded || !status.podIP || OWN_NAMESPACES.has(metadata.namespace)) return [];
    return [`${metadata.namespace}/${metadata.name}`];
  });
}
