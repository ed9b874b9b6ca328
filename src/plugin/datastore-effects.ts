/** The datastore, each of its commits a crash point in a test build. */
import type { Datastore } from "../datastore/datastore.ts";
import { effectOf } from "../effect.ts";

declare const FAULTS: boolean | undefined;

export function withCrashPoints(store: Datastore): Datastore {
  if (typeof FAULTS === "undefined" || !FAULTS) return store;
  const { recall, commitIfUnchanged } = store;
  return {
    read: (wanted) => store.read(wanted),
    commit: (changes) => effectOf("datastore commit", () => store.commit(changes)),
    ...(commitIfUnchanged && {
      commitIfUnchanged: (guess, changes) =>
        effectOf("datastore commit", () => commitIfUnchanged.call(store, guess, changes)),
    }),
    ...(recall && { recall: (wanted) => recall.call(store, wanted) }),
    watch: (prefix, from, signal) => store.watch(prefix, from, signal),
    close: () => store.close(),
  };
}
