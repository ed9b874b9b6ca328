/** A datastore around another one, with some of its reads, commits or watches done otherwise: `transact()` goes through them too. */
import type { Datastore } from "../../src/datastore/datastore.ts";
import { transactOn } from "../../src/datastore/transact.ts";

export function storeAround(
  store: Datastore,
  otherwise: Partial<Pick<Datastore, "read" | "commit" | "watch" | "close" | "clock">>,
): Datastore {
  const around: Datastore = {
    atomicity: store.atomicity,
    isOrchestratorApi: store.isOrchestratorApi,
    read: (wanted, at) => store.read(wanted, at),
    commit: (changes) => store.commit(changes),
    transact: (wanted, decide) => transactOn(around, wanted, decide),
    clock: () => store.clock?.(),
    watch: (prefix, from, signal) => store.watch(prefix, from, signal),
    close: () => store.close(),
    ...otherwise,
  };
  return around;
}
