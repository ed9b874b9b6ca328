/**
 * The store of the node agent on a memory datastore: decides from copies as on the orchestrator's API, from the worst
 * ones there are: of the moment when it was opened, since its watches hear nothing after that. Every request of a
 * transaction goes to the given store, so that it can be stopped, delayed or counted.
 */
import type { Datastore, DatastoreEvent, Wanted } from "../../src/datastore/datastore.ts";
import { type Observer, openCopyingStore } from "../../src/datastore/kube/copying-store.ts";
import { openMemory } from "../../src/datastore/memory/memory.ts";
import type { MemoryTable } from "../../src/datastore/memory/table.ts";
import { commitInOrder } from "../../src/datastore/ordered-changes.ts";
import { transactOneByOne } from "../../src/datastore/transact-one-by-one.ts";
import { blocksPrefix, resourcesPrefix } from "../../src/model/keys.ts";

const POOLS: Wanted = { kind: "prefix", prefix: resourcesPrefix("ippools") };
const BLOCKS = ([4, 6] as const).map((family): Wanted => ({ kind: "prefix", prefix: blocksPrefix(family) }));

/** The store without copies, where `copyingMemory()` is the alternative. */
export async function asItIs(store: Datastore, _table: MemoryTable): Promise<Datastore> {
  return store;
}

/** Resolves when it has copies of everything and remembers all blocks. */
export async function copyingMemory(store: Datastore, table: MemoryTable): Promise<Datastore> {
  const direct = openMemory(table, { atomicity: "one object" });
  let used: Datastore = direct;
  const copying = openCopyingStore((observer) => {
    const requests: Datastore = observed(
      {
        atomicity: "one object",
        // A list in pages is one of the copies.
        read: (wanted, at) => (wanted.some(isPage) ? direct : used).read(wanted, at),
        commit: (changes) => used.commit(changes),
        transact: (wanted, decide) => transactOneByOne(requests, wanted, decide),
        watch: (_prefix, from, signal) => silentWatch(from, signal),
        close: () => direct.close(),
      },
      observer,
    );
    return requests;
  });
  while (!(await decidesFromCopies(copying))) await new Promise((resolve) => setImmediate(resolve));
  await copying.read(BLOCKS);
  used = store;
  return copying;
}

async function* silentWatch(revision: string, signal: AbortSignal): AsyncIterable<DatastoreEvent> {
  yield { kind: "bookmark", revision };
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => resolve(), { once: true });
  if (!signal.aborted) await promise;
}

/** With nothing to change it decides once more, from what it reads. */
async function decidesFromCopies(store: Datastore): Promise<boolean> {
  let decisions = 0;
  await store.transact([POOLS], () => {
    decisions += 1;
    return { kind: "commit", changes: [], outcome: undefined };
  });
  return decisions === 2;
}

/** Tells the observer what responses show, as the store of the orchestrator's API does. */
function observed(store: Datastore, observer: Observer): Datastore {
  return {
    atomicity: store.atomicity,
    read: async (wanted, at) => {
      const snapshot = await store.read(wanted, at);
      snapshot.answers.forEach((entries, index) => {
        const each = wanted[index];
        if (each?.kind === "key" && entries.length === 0) observer.missed(each.key);
        for (const entry of entries) observer.saw(entry);
      });
      return snapshot;
    },
    commit: (changes) =>
      commitInOrder(changes, async ([change]) => {
        if (change === undefined || change.kind === "expect") return store.commit(change ? [change] : []);
        const written = await store.commit([change]).finally(() => observer.missed(change.key));
        if (written.ok && "value" in change) observer.saw({ ...change, revision: written.revision });
        return written;
      }),
    transact: (wanted, decide) => store.transact(wanted, decide),
    watch: (prefix, from, signal) => store.watch(prefix, from, signal),
    close: () => store.close(),
  };
}

function isPage(wanted: Wanted): boolean {
  return wanted.kind === "prefix" && wanted.limit !== undefined;
}
