/** The Nodes of a cluster, as far as the commands on a whole cluster need them. Pure. */
import * as v from "valibot";
import { decodeShape } from "../../model/shape.ts";

const nodeShape = v.object({
  metadata: v.object({ name: v.string(), labels: v.optional(v.record(v.string(), v.string())) }),
  spec: v.optional(v.object({ unschedulable: v.optional(v.boolean()) })),
  status: v.optional(
    v.object({
      addresses: v.optional(v.array(v.object({ type: v.string(), address: v.string() }))),
      conditions: v.optional(
        v.array(
          v.object({
            type: v.string(),
            status: v.string(),
            message: v.optional(v.string()),
            lastHeartbeatTime: v.optional(v.nullable(v.string())),
          }),
        ),
      ),
    }),
  ),
});

export interface ClusterNode {
  readonly name: string;
  readonly isReady: boolean;
  /** Why it is not. */
  readonly problem?: string;
  /** When its kubelet last reported its state, in milliseconds since 1970. */
  readonly heardAt?: number;
  readonly isSchedulable: boolean;
  readonly isControlPlane: boolean;
  readonly addresses: readonly string[];
}

export function clusterNodes(items: readonly unknown[]): readonly ClusterNode[] {
  return items.flatMap((item) => {
    const decoded = decodeShape(nodeShape, item);
    return decoded.ok ? [nodeOf(decoded.value)] : [];
  });
}

function nodeOf({ metadata, spec, status }: v.InferOutput<typeof nodeShape>): ClusterNode {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  const isReady = ready?.status === "True";
  const heardAt = Date.parse(ready?.lastHeartbeatTime ?? "");
  const message = ready?.message ?? "its kubelet has not reported its state";
  return {
    name: metadata.name,
    isReady,
    ...(isReady ? {} : { problem: message }),
    ...(Number.isNaN(heardAt) ? {} : { heardAt }),
    isSchedulable: spec?.unschedulable !== true,
    isControlPlane: metadata.labels?.["node-role.kubernetes.io/control-plane"] !== undefined,
    addresses: (status?.addresses ?? []).flatMap(({ type, address }) => (type === "InternalIP" ? [address] : [])),
  };
}
