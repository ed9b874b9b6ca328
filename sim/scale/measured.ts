/** What the benchmark of scale has measured: the content of docs/scale.json, from which everything else is computed. */
import type { ClusterSize } from "./cluster-records.ts";
import type { StoreCounts } from "./counted-store.ts";

export interface Measured {
  /** One real agent, in clusters of several sizes. */
  readonly agents: Readonly<Record<string, AgentAtScale & Place>>;
  /** Many agents in one process, on a datastore that counts. */
  readonly many: ManyAgents & Place;
  readonly fanOut: FanOut & Place;
  readonly apiFanOut: ApiFanOut & Place;
  /** An API server that starts again: before lists were spread, and since then. */
  readonly restarts: Readonly<Record<"before" | "since", ApiRestart & Place>>;
  /** Real agents on one machine. */
  readonly real: RealAgents & Place;
  /** Large policies of some tenants, and the changes of others. */
  readonly tenants: Tenants & Place;
}

/** When, of which commit and where a part was measured. */
export interface Place {
  readonly time: string;
  readonly commit: string;
  readonly host: {
    readonly processor: string;
    readonly processors: number;
    readonly kernel: string;
    readonly bun: string;
  };
}

export interface Spent {
  readonly wallMilliseconds: number;
  /** CPU time of the agent with its children, and of etcd. */
  readonly agentMilliseconds: number;
  readonly etcdMilliseconds: number;
  /** What etcd sent to all clients, and the unary requests that it got. */
  readonly sentBytes: number;
  readonly requests: number;
}

/** `writingMilliseconds`: how long the writes took, in large transactions as fast as etcd takes them, or at a given pace. */
export interface Burst extends Spent {
  readonly writingMilliseconds: number;
  /** Of the agent, afterwards. */
  readonly residentBytes: number;
}

export interface Memory {
  readonly residentBytes: number;
  readonly peakBytes: number;
}

export interface AgentAtScale {
  readonly size: ClusterSize;
  readonly records: { readonly count: number; readonly bytes: number };
  readonly first: Spent;
  readonly restart: Spent;
  readonly kernel: { readonly sets: number; readonly elements: number; readonly routes: number };
  readonly memory: {
    readonly settled: Memory;
    readonly afterChanges: Memory;
    readonly afterwards: Memory;
    readonly etcdBytes: number;
  };
  readonly idle: { readonly seconds: number; readonly agentMilliseconds: number; readonly requests: number };
  readonly changes: {
    readonly allowedPod: readonly Spent[];
    readonly policy: readonly Spent[];
    readonly node: readonly Spent[];
    readonly unrelatedPods: Spent & { readonly count: number };
  };
  readonly zone: { readonly nodes: number; readonly pods: number; readonly fails: Burst; readonly returns: Burst };
  readonly upgrade: Burst & { readonly nodes: number; readonly perSecond: number };
}

export interface ManyAgents {
  readonly size: ClusterSize;
  readonly residentBytes: number;
  readonly phases: Readonly<Record<PhaseName, Phase>>;
}

export type PhaseName = "start" | "pods start" | "at rest" | "zone fails" | "zone returns" | "rolling upgrade";

export interface Phase {
  /** What happened: agents, pods or nodes. */
  readonly count: number;
  /** Of all agents together. */
  readonly agents: StoreCounts;
  /** Of the runtimes, the controllers and whoever else changes records. */
  readonly others: StoreCounts;
  /** Elements and chains that the kernels would have got. */
  readonly kernelChanges: number;
  /** Of the whole process. */
  readonly cpuMilliseconds: number;
}

export interface FanOut {
  readonly rounds: readonly FanOutRound[];
}

export interface FanOutRound {
  readonly watchers: number;
  readonly writes: number;
  readonly recordsPerWrite: number;
  readonly bytesPerEvent: number;
  readonly etcdMilliseconds: number;
  readonly etcdResidentBytes: number;
  /** Of this process, which has all watchers. */
  readonly clientMilliseconds: number;
}

/** Watchers of pods on the orchestrator's API, and changes of one pod. */
export interface ApiFanOut {
  readonly rounds: readonly ApiFanOutRound[];
}

export interface ApiFanOutRound {
  readonly watchers: number;
  readonly writes: number;
  readonly bytesPerEvent: number;
  /** Of kube-apiserver, and of its etcd. */
  readonly apiMilliseconds: number;
  readonly etcdMilliseconds: number;
  readonly apiResidentBytes: number;
}

/** A kube-apiserver that starts again, below replicas of what an agent follows. */
export interface ApiRestart {
  readonly replicas: number;
  /** That each of them watches, and the objects in them. */
  readonly collections: number;
  readonly objects: number;
  readonly downMilliseconds: number;
  /** From when the server was ready until all replicas had seen a change of then. */
  readonly recoverMilliseconds: number;
  /** By verb, since the server ended. */
  readonly requests: Readonly<Record<string, number>>;
  readonly mostPerSecond: number;
  /** Of objects, also as the beginning of a watch; the other requests to list ask for the revision only. */
  readonly lists: number;
  readonly mostListsPerSecond: number;
  readonly mostListsPerTenthOfSecond: number;
  /** CPU time since the server ended. */
  readonly etcdMilliseconds: number;
  readonly apiMilliseconds: number;
  /** Lists and questions for the revision that the server sent to etcd. */
  readonly etcdReads: number;
}

export interface RealAgents {
  readonly nodes: number;
  readonly podsPerNode: number;
  /** The agents start on nodes that the datastore does not know. */
  readonly first: RealPhase;
  readonly pods: RealPhase;
  /** One pod more, until every node allows it. */
  readonly changes: readonly RealPhase[];
  readonly idle: RealPhase;
  /** Of the process that follows the datastore, and of all processes of an agent together. */
  readonly mainResidentBytes: number;
  readonly residentBytesPerAgent: number;
  readonly proportionalBytesPerAgent: number;
}

export interface RealPhase {
  readonly wallMilliseconds: number;
  /** CPU time. */
  readonly agentMilliseconds: number;
  readonly etcdMilliseconds: number;
  readonly requests: number;
  readonly sentBytes: number;
  readonly puts: number;
}

export interface Tenants {
  /** That have large policies, with one pod each. */
  readonly namespaces: number;
  readonly growth: readonly Growth[];
  readonly waiting: readonly WaitingTenant[];
}

/** One policy of an administrator, which has no limit and takes no turn. */
export interface Growth {
  /** Of its rules: each with a selector, or with the addresses that this would select. */
  readonly count: number;
  readonly selectors: GrownPolicy;
  readonly addresses: GrownPolicy;
}

export interface GrownPolicy {
  /** CPU time of the agent, with that of the kernel. */
  readonly agentMilliseconds: number;
  /** A change of another tenant that is written just after it. */
  readonly otherMilliseconds: number;
  /** Of the table. */
  readonly sets: number;
}

export interface WaitingTenant {
  readonly title: string;
  readonly policiesPerNamespace: number;
  /** Each change of another tenant while the policies are carried out. */
  readonly otherMilliseconds: readonly number[];
  readonly wallMilliseconds: number;
  readonly agentMilliseconds: number;
  /** For another version of the policies of one namespace, while those of the others are there: one update. */
  readonly oneMilliseconds: number;
  readonly sets: number;
}
