/** The datastore, each of its commits a crash point in a test build. */
import { type Datastore, provingPart } from "../datastore/datastore.ts";
import { effectOf } from "../effect.ts";

declare const FAULTS: boolean | undefined;

export function withCrashPoints(store: Datastore): Datastore {
  if (typeof FAULTS === "undefined" || !FAULTS) return store;
  return {
    read: (wanted, at) => store.read(wanted, at),
    commit: (changes) => effectOf("datastore commit", () => store.commit(changes)),
    ...provingPart(store, (commit) => effectOf("datastore commit", commit)),
    watch: (prefix, from, signal) => store.watch(prefix, from, signal),
    close: () => store.close(),
  };
}
