/**
 * What happens to a simulated cluster, as plain data: a script can be printed, made smaller, stored as a file and played
 * again. Every operation names what it concerns; one whose object does not exist (any more) does nothing, so that any
 * operation can be left out of a script.
 */
import type { RECORDED_ANNOTATIONS } from "../../src/model/recorded-annotations.ts";
import type { DatastoreKind } from "../datastore/servers.ts";

/** A NetworkPolicy of the orchestrator, as far as scripts write them. */
export interface PolicySpec {
  readonly podSelector: LabelSelector;
  readonly policyTypes: readonly ("Ingress" | "Egress")[];
  readonly ingress?: readonly { readonly from?: readonly PolicyPeer[]; readonly ports?: readonly PolicyPort[] }[];
  readonly egress?: readonly { readonly to?: readonly PolicyPeer[]; readonly ports?: readonly PolicyPort[] }[];
}

export interface LabelSelector {
  readonly matchLabels?: Labels;
}

export interface PolicyPeer {
  readonly podSelector?: LabelSelector;
  readonly namespaceSelector?: LabelSelector;
  readonly ipBlock?: { readonly cidr: string };
}

export interface PolicyPort {
  readonly protocol: "TCP" | "UDP";
  readonly port: number;
}

export type Labels = Readonly<Record<string, string>>;

/** In which the plugin records what it assigned, by their names without a prefix. */
export type RecordedAnnotations = Partial<Record<(typeof RECORDED_ANNOTATIONS)[number], string>>;

export interface PoolPlan {
  readonly name: string;
  readonly cidr: string;
  readonly blockSize: number;
  readonly encapsulation: "none" | "IPIP" | "IPIP between subnets" | "VXLAN" | "VXLAN between subnets";
  readonly disabled?: boolean;
  readonly natOutgoing?: boolean;
}

/** What users and the orchestrator do. */
export type UserAction =
  | {
      readonly kind: "create pod";
      readonly namespace: string;
      readonly name: string;
      readonly node: string;
      readonly labels: Labels;
      /** The address that it asks for. */
      readonly asksFor?: string;
      /** Addresses are kept for its name. */
      readonly keeps?: true;
    }
  /** "by force": the API forgets the pod at once, its sandbox ends later. "without DEL": the runtime loses the sandbox. */
  | {
      readonly kind: "delete pod";
      readonly namespace: string;
      readonly name: string;
      readonly how: "gracefully" | "by force" | "without DEL";
      /** Its grace period in milliseconds, for which its containers run on if it ends gracefully; 0 if absent. */
      readonly grace?: number;
    }
  /** The API forgets a static pod, which runs on: its kubelet cannot create its mirror again. */
  | { readonly kind: "lose mirror"; readonly namespace: string; readonly name: string }
  /** What a user may write on own pods. `withAddressOf`: another pod, whose address `podIP` and `podIPs` claim. */
  | {
      readonly kind: "annotate pod";
      readonly namespace: string;
      readonly name: string;
      readonly annotations: RecordedAnnotations;
      readonly withAddressOf?: { readonly namespace: string; readonly name: string };
    }
  /** For as long as it lasts, packets are sent now and then, whoever has the addresses by then. */
  | {
      readonly kind: "open connection";
      readonly from: { readonly namespace: string; readonly name: string };
      readonly to: { readonly namespace: string; readonly name: string };
      readonly protocol: "TCP" | "UDP";
      readonly port: number;
      readonly lasts: number;
    }
  | { readonly kind: "label pod"; readonly namespace: string; readonly name: string; readonly labels: Labels }
  | { readonly kind: "apply namespace"; readonly name: string; readonly labels: Labels }
  | { readonly kind: "apply policy"; readonly namespace: string; readonly name: string; readonly spec: PolicySpec }
  | { readonly kind: "delete policy"; readonly namespace: string; readonly name: string }
  | { readonly kind: "apply pool"; readonly pool: PoolPlan }
  /** By kubectl, where it can: it asks nobody whether addresses of the pool are in use. */
  | { readonly kind: "delete pool"; readonly name: string; readonly by?: "kubectl" }
  | { readonly kind: "join node"; readonly node: string }
  /**
   * Its pods go with it, without a DEL. `runsOn`: for how long its machine does, with its containers and its agent, but
   * without its kubelet, unless the node joins again; absent: it is switched off.
   */
  | { readonly kind: "delete node"; readonly node: string; readonly runsOn?: number };

/** What the runtime of a node does beside the pods that it is told to start and to end. */
export type RuntimeAction =
  /** The sandbox of a pod vanishes, and its kubelet starts another one. */
  | { readonly kind: "lose sandbox"; readonly namespace: string; readonly name: string }
  | {
      readonly kind: "repeat call";
      readonly namespace: string;
      readonly name: string;
      readonly call: "ADD" | "DEL" | "CHECK";
    }
  | { readonly kind: "collect garbage"; readonly node: string };

export const FOREIGN_CHANGES = [
  ...(["delete a route", "delete a tunnel", "delete a neighbour", "delete a forwarding entry"] as const),
  /** As a network manager does that starts again, and takes all routes for its own. */
  ...(["delete a table", "delete all routes"] as const),
];

export type ForeignChange = (typeof FOREIGN_CHANGES)[number];

/** A fault lasts `lasts` milliseconds, or is over at once. `place`: a node, or a copy of the controllers. */
export type FaultAction =
  | {
      readonly kind: "disturb requests";
      readonly delay: readonly [least: number, most: number];
      readonly lostRequest: number;
      readonly lostAnswer: number;
      readonly lasts: number;
    }
  /** Arrive up to half a minute later, when their clients may have given up, or have sent them again. */
  | { readonly kind: "late requests"; readonly probability: number; readonly lasts: number }
  | { readonly kind: "cut"; readonly place: string; readonly lasts: number }
  | { readonly kind: "restart datastore"; readonly lasts: number }
  | { readonly kind: "restart API"; readonly lasts: number }
  /** Accepts requests, and executes them when the fault is over. */
  | { readonly kind: "hang datastore"; readonly lasts: number }
  | { readonly kind: "hang API"; readonly lasts: number }
  /** Answers that clients shall come again later (429). */
  | { readonly kind: "busy API"; readonly lasts: number }
  | { readonly kind: "compact datastore" }
  | { readonly kind: "compact API" }
  /** Their events arrive when the fault is over. */
  | { readonly kind: "stall watches"; readonly place: string; readonly lasts: number }
  /** They fail, and so do new ones until the fault is over. */
  | { readonly kind: "break watches"; readonly place: string; readonly lasts: number }
  /** The servers forget them, and their clients hear nothing of it; `lasts`: until they must have noticed. */
  | { readonly kind: "lose watches"; readonly place: string; readonly lasts: number }
  /** The API ends them, and new ones soon after they are accepted, until the fault is over: as a proxy that closes long responses. */
  | { readonly kind: "end watches"; readonly place: string; readonly lasts: number }
  /** Dies after that many effects, and is started again after `lasts`. */
  | { readonly kind: "kill agent"; readonly node: string; readonly afterEffects: number; readonly lasts: number }
  /** The next call of the runtime on that node dies after that many effects. */
  | { readonly kind: "kill call"; readonly node: string; readonly afterEffects: number }
  | { readonly kind: "kill controllers"; readonly place: string; readonly afterEffects: number; readonly lasts: number }
  /** Does not run, and goes on as if nothing had happened. */
  | { readonly kind: "freeze agent"; readonly node: string; readonly lasts: number }
  | { readonly kind: "freeze controllers"; readonly place: string; readonly lasts: number }
  /**
   * Are started again with an API that has next to nothing: of another cluster, as with a wrong kubeconfig; or, as after a
   * restore of too little, of this one, which only a large cluster survives.
   */
  | { readonly kind: "mislead controllers"; readonly place: string; readonly by?: "restore"; readonly lasts: number }
  | { readonly kind: "reboot node"; readonly node: string; readonly lasts: number }
  | { readonly kind: "lose kernel events"; readonly node: string; readonly probability: number; readonly lasts: number }
  /** By the kernel, which has no memory for them. */
  | { readonly kind: "refuse changes"; readonly node: string; readonly probability: number; readonly lasts: number }
  /** A list of the kernel changes while it is read. */
  | { readonly kind: "interrupt lists"; readonly node: string; readonly probability: number; readonly lasts: number }
  | { readonly kind: "foreign change"; readonly node: string; readonly what: ForeignChange; readonly choice: number };

export type Action = UserAction | RuntimeAction | FaultAction;

/** `at`: virtual milliseconds since the cluster was at rest for the first time. */
export type Operation = { readonly at: number } & Action;

export interface Script {
  readonly seed: number;
  readonly datastore: DatastoreKind;
  readonly flavour: "realistic" | "hostile";
  /** Of the nodes: all in one, or the third and further ones in another. */
  readonly subnets: 1 | 2;
  /** How long an ADD waits for the rules of its pod; 0: it does not. */
  readonly policySetupSeconds: number;
  /** Who executes calls of the plugin while the agent runs. */
  readonly calls: "itself" | "server";
  readonly nodes: readonly string[];
  readonly pools: readonly PoolPlan[];
  readonly operations: readonly Operation[];
}

export const FAULTS = [
  ...(["disturb requests", "late requests", "cut", "restart datastore", "restart API", "hang datastore"] as const),
  ...(["hang API", "busy API", "compact datastore", "compact API"] as const),
  ...(["stall watches", "break watches", "lose watches", "end watches"] as const),
  ...(["kill agent", "kill call", "kill controllers", "freeze agent", "freeze controllers", "reboot node"] as const),
  "mislead controllers" as const,
  ...(["lose kernel events", "refuse changes", "interrupt lists", "foreign change"] as const),
] satisfies readonly FaultAction["kind"][];

export type FaultKind = (typeof FAULTS)[number];

export function isFault(action: Action): action is FaultAction {
  return (FAULTS as readonly string[]).includes(action.kind);
}
