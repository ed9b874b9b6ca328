/** Which pods' logs `cluster diags` collects. Pure. */
import * as v from "valibot";
import { identity } from "../../identity.ts";
import { decodeShape } from "../../model/shape.ts";

const podShape = v.object({
  metadata: v.object({
    name: v.string(),
    namespace: v.string(),
    ownerReferences: v.optional(v.array(v.object({ kind: v.string(), name: v.string() })), []),
  }),
  spec: v.object({
    nodeName: v.optional(v.string(), ""),
    containers: v.array(v.object({ name: v.string() })),
    initContainers: v.optional(v.array(v.object({ name: v.string() })), []),
  }),
  status: v.optional(
    v.object({
      containerStatuses: v.optional(
        v.array(
          v.object({
            name: v.string(),
            ready: v.optional(v.boolean(), false),
            restartCount: v.optional(v.number(), 0),
          }),
        ),
        [],
      ),
    }),
    {},
  ),
});

export interface DiagnosedPod {
  readonly namespace: string;
  readonly name: string;
  /** What it belongs to: the DaemonSet, or the ReplicaSet of a Deployment. */
  readonly workload: string;
  readonly node: string;
  readonly isReady: boolean;
  readonly isOurs: boolean;
  readonly containers: readonly { readonly name: string; readonly hasRestarted: boolean }[];
}

export function podsIn(items: readonly unknown[]): readonly DiagnosedPod[] {
  return items.flatMap((item) => {
    const decoded = decodeShape(podShape, item);
    if (!decoded.ok) return [];
    const { metadata, spec, status } = decoded.value;
    const states = status.containerStatuses ?? [];
    const restarted = new Set(states.filter(({ restartCount }) => restartCount > 0).map(({ name }) => name));
    return [
      {
        namespace: metadata.namespace,
        name: metadata.name,
        workload: `${metadata.namespace}/${metadata.ownerReferences[0]?.name ?? metadata.name}`,
        node: spec.nodeName,
        isReady: states.length > 0 && states.every(({ ready }) => ready),
        // Other programs run in the same namespace, if the network was installed by a manifest.
        isOurs: metadata.name.startsWith(identity.product),
        containers: [...spec.initContainers, ...spec.containers].map(({ name }) => ({
          name,
          hasRestarted: restarted.has(name),
        })),
      },
    ];
  });
}

export function choosePods(
  pods: readonly DiagnosedPod[],
  { maxLogs, focusNodes }: { readonly maxLogs: number; readonly focusNodes: readonly string[] },
): readonly DiagnosedPod[] {
  const rank = ({ node, isReady }: DiagnosedPod) => (focusNodes.includes(node) ? 0 : isReady ? 2 : 1);
  const groups = Map.groupBy(
    pods.filter(({ isOurs }) => isOurs),
    ({ workload }) => workload,
  );
  return [...groups.values()].flatMap((group) =>
    group.toSorted((left, right) => rank(left) - rank(right) || (left.name < right.name ? -1 : 1)).slice(0, maxLogs),
  );
}
