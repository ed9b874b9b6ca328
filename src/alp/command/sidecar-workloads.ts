/** Which workloads have the sidecar, which release of it, and which need it. Pure. */
import { type MeshPod, type Owner, releaseOf, topOwner } from "../mesh/mesh-pods.ts";

export interface SidecarFacts {
  readonly pods: readonly MeshPod[];
  /** By `NAMESPACE/KIND/NAME`: what controls a ReplicaSet or a Job. */
  readonly owners: ReadonlyMap<string, Owner>;
  /** By `NAMESPACE/POD`: the policies with `http` rules that select it. */
  readonly httpPolicies: ReadonlyMap<string, readonly string[]>;
  /** Whether a proxy of the mesh asks the sidecar in this pod, and denies without it. */
  readonly isFiltered: (pod: MeshPod) => boolean;
  /** Of this tool. */
  readonly version: string;
}

export interface SidecarWorkload {
  readonly namespace: string;
  /** `deployment/web` */
  readonly workload: string;
  readonly pods: number;
  readonly withSidecar: number;
  /** Pods whose sidecar reports to the node agent. */
  readonly reporting: number;
  /** Releases of the sidecar, and how many pods run them. */
  readonly releases: Readonly<Record<string, number>>;
  readonly images: readonly string[];
  /** Policies with `http` rules that select pods of it. */
  readonly policies: readonly string[];
  readonly state: WorkloadState;
  /** Pods that make the state what it is. */
  readonly concerned: readonly string[];
}

/**
 * `unfiltered`: the kernel accepts connections by `http` rules, since the sidecar reports in, but the proxy does not ask it: every
 * request is allowed. `denied`: the proxy denies everything, since there is no sidecar to ask. `closed`: `http` rules match nothing, without a
 * sidecar. `silent`: the same, since the sidecar does not report in. `starting`: it cannot yet. `outdated`: another release than
 * this.
 */
export type WorkloadState = "ok" | "outdated" | "starting" | "silent" | "closed" | "denied" | "unfiltered";

/** Only workloads that have the sidecar or need it, by namespace and name. */
export function sidecarWorkloads(facts: SidecarFacts): readonly SidecarWorkload[] {
  const groups = Map.groupBy(facts.pods, (pod) => `${pod.namespace}/${workloadOf(pod, facts)}`);
  return [...groups]
    .flatMap(([key, pods]) => {
      const isConcerned = pods.some((pod) => pod.sidecarImage !== undefined || isNeeded(pod, facts));
      return isConcerned ? [describe(key, pods, facts)] : [];
    })
    .sort((left, right) => (keyOf(left) < keyOf(right) ? -1 : 1));
}

function describe(key: string, pods: readonly MeshPod[], facts: SidecarFacts): SidecarWorkload {
  const [namespace = "", ...workload] = key.split("/");
  const withSidecar = pods.filter(({ sidecarImage }) => sidecarImage !== undefined);
  const releases = Map.groupBy(withSidecar, releaseOf);
  const policies = pods.flatMap((pod) => policiesOf(pod, facts));
  return {
    namespace,
    workload: workload.join("/"),
    pods: pods.length,
    withSidecar: withSidecar.length,
    reporting: pods.filter(({ reported }) => reported !== undefined).length,
    releases: Object.fromEntries([...releases].map(([release, { length }]) => [release, length] as const).sort()),
    images: [...new Set(withSidecar.flatMap(({ sidecarImage = [] }) => sidecarImage))].sort(),
    policies: [...new Set(policies)].sort(),
    ...stateOf(pods, facts),
  };
}

/** The worst state of its pods. */
function stateOf(pods: readonly MeshPod[], facts: SidecarFacts): Pick<SidecarWorkload, "state" | "concerned"> {
  const states = pods.map((pod) => ({ name: pod.name, state: stateOfPod(pod, facts) }));
  const state = WORST_FIRST.find((each) => states.some((pod) => pod.state === each)) ?? "ok";
  return {
    state,
    concerned: state === "ok" ? [] : states.filter((pod) => pod.state === state).map(({ name }) => name),
  };
}

const WORST_FIRST: readonly WorkloadState[] = ["unfiltered", "denied", "closed", "silent", "starting", "outdated"];

function stateOfPod(pod: MeshPod, facts: SidecarFacts): WorkloadState {
  if (pod.sidecarImage === undefined) {
    if (pod.hasProxy && facts.isFiltered(pod)) return "denied";
    return policiesOf(pod, facts).length > 0 ? "closed" : "ok";
  }
  if (pod.reported === undefined) return pod.hasStarted ? "silent" : "starting";
  if (pod.hasProxy && !facts.isFiltered(pod) && policiesOf(pod, facts).length > 0) return "unfiltered";
  return releaseOf(pod) === facts.version ? "ok" : "outdated";
}

function isNeeded(pod: MeshPod, facts: SidecarFacts): boolean {
  return policiesOf(pod, facts).length > 0 || (pod.hasProxy && facts.isFiltered(pod));
}

function policiesOf({ namespace, name }: MeshPod, { httpPolicies }: SidecarFacts): readonly string[] {
  return httpPolicies.get(`${namespace}/${name}`) ?? [];
}

function workloadOf(pod: MeshPod, { owners }: SidecarFacts): string {
  const { kind, name } = topOwner(pod, owners);
  return `${kind.toLowerCase()}/${name}`;
}

function keyOf({ namespace, workload }: SidecarWorkload): string {
  return `${namespace} ${workload}`;
}
