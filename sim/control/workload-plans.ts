/** What the controllers of DaemonSets and Deployments do next, and what they report. Pure. */
type Texts = Readonly<Record<string, string>>;

/** An object of any kind, as far as it matters here. */
export interface Workload {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly generation?: number;
    readonly labels?: Texts;
    readonly annotations?: Texts;
    readonly deletionTimestamp?: string;
    readonly finalizers?: readonly string[];
    readonly ownerReferences?: readonly { readonly uid: string }[];
  };
  readonly spec: {
    readonly template?: {
      readonly metadata?: { readonly labels?: Texts; readonly annotations?: Texts };
      readonly spec?: Workload["spec"];
    };
    readonly updateStrategy?: { readonly type?: string };
    readonly replicas?: number;
    readonly group?: string;
    readonly nodeName?: string;
    readonly nodeSelector?: Texts;
    readonly containers?: readonly { readonly name: string; readonly image?: string }[];
    readonly versions?: readonly { readonly name: string; readonly storage?: boolean }[];
  };
  readonly status?: Readonly<Record<string, unknown>>;
  /** Of a ControllerRevision. */
  readonly revision?: number;
}

interface WorkloadPlan {
  readonly create: readonly object[];
  /** Names of pods. */
  readonly remove: readonly string[];
  readonly status: Readonly<Record<string, number>>;
}

/** Of the present template, without a number. */
export interface NewRevision {
  readonly metadata: Pick<Workload["metadata"], "name" | "namespace" | "labels"> & {
    readonly ownerReferences: readonly object[];
  };
}

const HASH = "controller-revision-hash";

/** One pod on each node that it selects; an outdated one is replaced when all others are ready. */
export function daemonSetPlan(
  daemonSet: Workload,
  nodes: readonly Workload[],
  pods: readonly Workload[],
): WorkloadPlan & { readonly revision: NewRevision } {
  const { metadata, spec } = daemonSet;
  const hash = hashOf(spec.template);
  const wanted = nodes
    .filter((node) => selects(spec.template?.spec?.nodeSelector ?? {}, node))
    .map((node) => node.metadata.name);
  const without = wanted.filter((node) => !pods.some((pod) => pod.spec.nodeName === node));
  const astray = pods.filter((pod) => !wanted.includes(pod.spec.nodeName ?? "") && !isEnding(pod));
  const outdated = pods.filter((pod) => pod.metadata.labels?.[HASH] !== hash && !isEnding(pod));
  const isUndisturbed = without.length === 0 && pods.every((pod) => isReady(pod) && !isEnding(pod));
  const isRolling = (spec.updateStrategy?.type ?? "RollingUpdate") === "RollingUpdate";
  const [unready] = outdated.filter((pod) => !isReady(pod));
  const next = unready ?? (isUndisturbed ? outdated[0] : undefined);
  const ready = pods.filter((pod) => isReady(pod) && !isEnding(pod));
  return {
    revision: {
      metadata: {
        name: `${metadata.name}-${hash}`,
        namespace: metadata.namespace,
        labels: { ...spec.template?.metadata?.labels, [HASH]: hash },
        ownerReferences: [{ apiVersion: "apps/v1", kind: "DaemonSet", name: metadata.name, uid: metadata.uid }],
      },
    },
    create: without.map((node) =>
      podOf(daemonSet, { kind: "DaemonSet", hash, node, name: `${metadata.name}-${hash}-${node}` }),
    ),
    remove: [...astray, ...(isRolling && next !== undefined ? [next] : [])].map((pod) => pod.metadata.name),
    status: {
      observedGeneration: metadata.generation ?? 0,
      desiredNumberScheduled: wanted.length,
      currentNumberScheduled: wanted.length - without.length,
      updatedNumberScheduled: pods.filter((pod) => pod.metadata.labels?.[HASH] === hash && !isEnding(pod)).length,
      numberReady: ready.length,
      numberAvailable: ready.length,
      numberMisscheduled: astray.length,
    },
  };
}

/** New pods first; outdated ones go when the new ones are ready. */
export function deploymentPlan(
  deployment: Workload,
  nodes: readonly Workload[],
  pods: readonly Workload[],
): WorkloadPlan {
  const { metadata, spec } = deployment;
  const hash = hashOf(spec.template);
  const replicas = spec.replicas ?? 1;
  const current = pods.filter((pod) => pod.metadata.labels?.[HASH] === hash && !isEnding(pod));
  const names = Array.from({ length: replicas }, (_, index) => `${metadata.name}-${hash}-${index}`);
  const missing = names.filter((name) => !pods.some((pod) => pod.metadata.name === name));
  const surplus = current.filter((pod) => !names.includes(pod.metadata.name));
  const outdated = pods.filter((pod) => pod.metadata.labels?.[HASH] !== hash && !isEnding(pod));
  const areNewReady = current.filter(isReady).length >= replicas;
  const ready = pods.filter((pod) => isReady(pod) && !isEnding(pod));
  return {
    create: missing.flatMap((name, index) => {
      const node = nodes[index % Math.max(1, nodes.length)]?.metadata.name;
      return node === undefined ? [] : [podOf(deployment, { kind: "Deployment", hash, node, name })];
    }),
    remove: [...surplus, ...(areNewReady ? outdated : [])].map((pod) => pod.metadata.name),
    status: {
      observedGeneration: metadata.generation ?? 0,
      replicas: pods.length,
      updatedReplicas: current.length,
      readyReplicas: ready.length,
      availableReplicas: ready.length,
    },
  };
}

function podOf(
  { metadata: { name: owner, namespace, uid }, spec: { template } }: Workload,
  {
    kind,
    hash,
    node,
    name,
  }: { readonly kind: string; readonly hash: string; readonly node: string; readonly name: string },
): object {
  const { labels = {}, annotations = {} } = template?.metadata ?? {};
  const ownerReferences = [{ apiVersion: "apps/v1", kind, name: owner, uid, controller: true }];
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, labels: { ...labels, [HASH]: hash }, annotations, ownerReferences },
    spec: { ...template?.spec, nodeName: node },
  };
}

function selects(selector: Texts, node: Workload): boolean {
  return Object.entries(selector).every(([name, value]) => node.metadata.labels?.[name] === value);
}

function isReady({ status }: Workload): boolean {
  return status?.["phase"] === "Running";
}

function isEnding({ metadata }: Workload): boolean {
  return metadata.deletionTimestamp !== undefined;
}

function hashOf(value: unknown): string {
  return Bun.hash(JSON.stringify(value ?? {})).toString(36);
}
