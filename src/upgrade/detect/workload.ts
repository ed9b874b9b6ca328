/** A DaemonSet or Deployment, as far as it shows how the product was installed. Pure. */
import * as v from "valibot";
import { decodeShape } from "../../model/shape.ts";

const container = v.object({
  name: v.string(),
  image: v.optional(v.string(), ""),
  env: v.optional(v.array(v.object({ name: v.string(), value: v.optional(v.string(), "") })), []),
});

const count = v.optional(v.number(), 0);
const shape = v.object({
  metadata: v.object({ name: v.string(), namespace: v.string(), generation: v.optional(v.number(), 0) }),
  spec: v.object({
    replicas: v.optional(v.number()),
    selector: v.object({ matchLabels: v.optional(v.record(v.string(), v.string()), {}) }),
    template: v.object({
      spec: v.object({ containers: v.array(container), initContainers: v.optional(v.array(container), []) }),
    }),
  }),
  status: v.optional(
    v.object({
      observedGeneration: count,
      desiredNumberScheduled: v.optional(v.number()),
      updatedNumberScheduled: count,
      updatedReplicas: count,
    }),
    {},
  ),
});

export interface Workload {
  readonly kind: "DaemonSet" | "Deployment";
  readonly namespace: string;
  readonly name: string;
  readonly selector: Readonly<Record<string, string>>;
  readonly containers: readonly Container[];
  readonly initContainers: readonly Container[];
  /** Pods that it should have, and those of its present template. */
  readonly desired: number;
  readonly updated: number;
}

export interface Container {
  readonly name: string;
  readonly image: string;
  /** A variable whose value comes from elsewhere is in it with an empty value. */
  readonly environment: ReadonlyMap<string, string>;
}

export function workloadOf(kind: Workload["kind"], object: unknown): Workload | undefined {
  const decoded = decodeShape(shape, object);
  if (!decoded.ok) return undefined;
  const { metadata, spec, status } = decoded.value;
  const desired = status.desiredNumberScheduled ?? spec.replicas ?? 0;
  const isObserved = (status.observedGeneration ?? 0) >= metadata.generation;
  return {
    kind,
    namespace: metadata.namespace,
    name: metadata.name,
    selector: spec.selector.matchLabels,
    containers: spec.template.spec.containers.map(containerOf),
    initContainers: spec.template.spec.initContainers.map(containerOf),
    desired,
    updated: isObserved ? (status.updatedNumberScheduled ?? 0) + (status.updatedReplicas ?? 0) : 0,
  };
}

function containerOf({ name, image, env }: v.InferOutput<typeof container>): Container {
  return { name, image, environment: new Map(env.map((variable) => [variable.name, variable.value])) };
}

/** `DaemonSet kube-system/vendor-node` */
export function describeWorkload({ kind, namespace, name }: Workload): string {
  return `${kind} ${namespace}/${name}`;
}

/** The value of a variable in any container; empty if it comes from elsewhere, `undefined` if there is none. */
export function variableOf({ containers, initContainers }: Workload, name: string): string | undefined {
  return [...containers, ...initContainers].find(({ environment }) => environment.has(name))?.environment.get(name);
}
