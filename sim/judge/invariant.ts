/**
 * What must hold in a simulated cluster, and what the invariants may look at: the truth, not what a part of the product
 * believes. Whoever runs a simulation fills a `World` once, and its getters show the present state.
 */
import type { Atomicity } from "../../src/datastore/datastore.ts";
import type { NetworkNamespace } from "../kernel/model.ts";
import type { Records } from "./records.ts";

/** How the names of the processes begin that do the calls of plugins for the agent. */
export const SERVER_OF_CALLS = "calls";

export interface Violation {
  readonly invariant: string;
  readonly what: string;
}

/**
 * "after each step": whatever faults there are. "at rest": all faults are healed, nobody changes anything, and longer ago
 * than every bound that the product promises.
 */
export interface Invariant {
  readonly name: string;
  readonly when: "after each step" | "at rest";
  /** Says everything that is wrong, in words. Cheap if nothing changed since the last call. */
  check(world: World): readonly string[];
}

export interface World {
  /** Milliseconds of virtual time. */
  readonly now: number;
  /** The product's records, in whichever datastore. */
  readonly records: Records;
  /** What users asked of the orchestrator, as records that it is copied to; absent if nothing is copied. */
  readonly asked?: Records;
  /** Of the datastore; "one object" if absent. */
  readonly atomicity?: Atomicity;
  /** What the orchestrator says, by `NAMESPACE/NAME`. */
  readonly pods: ReadonlyMap<string, WorldPod>;
  /** The machines that are switched on, by the name of the node. */
  readonly nodes: ReadonlyMap<string, WorldNode>;
  /** What programs did that nobody killed and nobody asked to end: who ended by itself, or failed for no reason outside. */
  readonly crashes?: readonly string[];
  /** Calls of CHECK and GC that failed while nothing disturbed their node. */
  readonly failedCalls?: readonly string[];
  /** How often each watch of the orchestrator's API was begun, by who follows what. */
  readonly begunWatches?: ReadonlyMap<string, number>;
  /** The copies of the controllers that write, or would if they were not frozen. */
  readonly leaders?: readonly string[];
}

/** For how long addresses wait for a pod that keeps them: longer than an ADD may be late. */
export const KEEP_SECONDS = 5 * 60;

export interface WorldPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly node: string;
  /** It is being deleted, was evicted, or has ended: its addresses may be given back. */
  readonly isEnding: boolean;
  /** The address that it asks for by name. */
  readonly asksFor?: string;
  /** Addresses are kept for its name, for as long as `KEEP_SECONDS`. */
  readonly keeps?: true;
  /** Why its ADD cannot succeed: what it asks for is not possible. */
  readonly excuse?: string;
  /** What the last ADD said that failed. */
  readonly failure?: string;
}

export interface WorldNode {
  readonly name: string;
  /** The orchestrator has a node of this name. */
  readonly isRegistered: boolean;
  /** What the runtime believes, by container. */
  readonly attachments: ReadonlyMap<string, WorldAttachment>;
  /** Containers of it that ran when the node was deleted: their addresses may be others' since then. */
  readonly disowned?: ReadonlySet<string>;
  /** Absent if no kernel is simulated. */
  readonly host?: WorldHost;
}

export interface WorldHost {
  readonly root: NetworkNamespace;
  /** The namespace of a container; `undefined` if there is none. */
  namespaceAt(path: string): NetworkNamespace | undefined;
  /** Hosts of one segment reach each other without a router. */
  readonly segment: string;
  /** In the directory of endpoint status, by file name. */
  readonly statusFiles: ReadonlyMap<string, string>;
  /** What the agent has noted of the revisions that its kernel may have; `undefined`: nothing. */
  readonly seenRevisions?: string | undefined;
  /** When the datastore last told the agent something, as it says itself, in virtual milliseconds; absent: not judged. */
  readonly knownAt?: number | undefined;
  /** Whether the agent says that outgoing NAT is for the pools that there are. */
  readonly isNatFollowed?: boolean;
  /** When somebody else last changed what the product has set, in virtual milliseconds. */
  readonly tamperedAt?: number;
  /** When no fault touched the node, in order; absent: always. */
  readonly quietTimes?: readonly { readonly since: number; readonly until: number }[];
  /** How long an ADD waits for the rules of its container; absent or 0 if it does not. */
  readonly policySetupMilliseconds?: number;
}

export interface WorldAttachment {
  readonly pod: Pick<WorldPod, "namespace" | "name" | "uid">;
  readonly containerId: string;
  /** Of its network namespace; absent if no kernel is simulated. */
  readonly netnsPath?: string;
  /** "attached": ADD succeeded, and no DEL was begun since. */
  readonly state: "adding" | "attached" | "deleting" | "failed";
  /** In the result of ADD: `10.0.0.5`, without a length. */
  readonly addresses: readonly string[];
}

/** An attachment that somebody uses: the container runs, and its pod is not about to end. */
export interface LivingAttachment extends WorldAttachment {
  readonly node: string;
}

export function livingAttachments({ nodes, pods }: World): readonly LivingAttachment[] {
  return Array.from(nodes.values()).flatMap(({ name: node, isRegistered, attachments }) =>
    Array.from(attachments.values())
      .filter(({ state, pod: { namespace, name, uid } }) => {
        const pod = pods.get(`${namespace}/${name}`);
        return isRegistered && state === "attached" && pod?.uid === uid && pod.node === node && !pod.isEnding;
      })
      .map((attachment) => ({ ...attachment, node })),
  );
}

/**
 * Every container that runs, whatever the API says of its pod: ending, deleted by force, or without its mirror. Until its
 * node is deleted: that is the administrator's word that nothing of it runs.
 */
export function runningAttachments({ nodes }: World): readonly LivingAttachment[] {
  return Array.from(nodes.values()).flatMap(({ name: node, isRegistered, attachments, disowned }) =>
    Array.from(attachments.values())
      .filter(({ state, containerId }) => isRegistered && state === "attached" && disowned?.has(containerId) !== true)
      .map((attachment) => ({ ...attachment, node })),
  );
}

export function violationsIn(world: World, invariants: readonly Invariant[]): readonly Violation[] {
  return invariants.flatMap((each) => each.check(world).map((what) => ({ invariant: each.name, what })));
}
