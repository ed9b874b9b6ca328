/**
 * A datastore whose transactions and commits change nothing while it is locked: for everything that changes IPAM data and
 * does not look at the lock itself. The lock is one more key of the first read, and a precondition of the commit; what
 * writes nothing does not depend on it.
 */
import type { Answered, Datastore, Decide, Entry, OrderedChange } from "../datastore/datastore.ts";
import { readyForReleasing, WANTED_CLUSTER } from "./cluster.ts";

/** The stores that do so already. */
const RESPECTING = new WeakSet<Datastore>();

/** `require`: throws if nothing may be written, by ClusterInformation, for another reason. */
export function respectingLock(store: Datastore, require: (entry: Entry | undefined) => void = () => {}): Datastore {
  if (RESPECTING.has(store)) return store;
  const respecting: Datastore = {
    atomicity: store.atomicity,
    isOrchestratorApi: store.isOrchestratorApi,
    read: (wanted, at) => store.read(wanted, at),
    commit: async (changes) => {
      const { written } = await store.transact(
        [WANTED_CLUSTER],
        unlessLocked(() => ({ kind: "commit", changes, outcome: undefined }), require),
      );
      return written;
    },
    transact: (wanted, decide) => store.transact([WANTED_CLUSTER, ...wanted], unlessLocked(decide, require)),
    ...(store.prefetch && { prefetch: (prefixes: readonly string[]) => store.prefetch?.(prefixes) }),
    clock: () => store.clock?.(),
    watch: (prefix, from, signal) => store.watch(prefix, from, signal),
    close: () => store.close(),
  };
  RESPECTING.add(respecting);
  return respecting;
}

/** The result for the lock is the first one of the first read. */
function unlessLocked<Outcome>(decide: Decide<Outcome>, require: (entry: Entry | undefined) => void): Decide<Outcome> {
  return ([first, ...more]) => {
    const decision = decide(first === undefined ? [] : [withoutFirst(first), ...more]);
    if (decision.kind === "read" || !decision.changes.some(isWrite)) return decision;
    require(first?.answers[0]?.[0]);
    return { ...decision, changes: [...readyForReleasing(first?.answers[0]), ...decision.changes] };
  };
}

function withoutFirst({ wanted, answers }: Answered): Answered {
  return { wanted: wanted.slice(1), answers: answers.slice(1) };
}

function isWrite({ kind }: OrderedChange): boolean {
  return kind !== "expect";
}
