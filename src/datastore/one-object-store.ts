/** Wraps any store so that it commits one object at a time: for test builds, until the orchestrator's API is a datastore. */
import type { Datastore } from "./datastore.ts";
import { commitInOrder } from "./ordered-changes.ts";
import { transactOn } from "./transact.ts";

export function oneObjectStore(store: Datastore): Datastore {
  const around: Datastore = {
    atomicity: "one object",
    read: (wanted, at) => store.read(wanted, at),
    commit: (changes) => commitInOrder(changes, (change) => store.commit(change)),
    transact: (wanted, decide) => transactOn(around, wanted, decide),
    clock: () => store.clock?.(),
    watch: (prefix, from, signal) => store.watch(prefix, from, signal),
    close: () => store.close(),
  };
  return around;
}
