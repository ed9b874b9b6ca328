import type { FollowedStore } from "../feed.ts";

/** A store whose watches can be interrupted, and prevented from being opened again. */
export function interruptible(store: FollowedStore) {
  let reads = 0;
  let cutting = new AbortController();
  let isBlocked = false;
  let lost = Promise.withResolvers<void>();
  return {
    reads: () => reads,
    block: () => {
      isBlocked = true;
    },
    unblock: () => {
      isBlocked = false;
    },
    /** Resolves when the replica has noticed. */
    cut: async () => {
      lost = Promise.withResolvers();
      cutting.abort();
      await lost.promise;
    },
    store: {
      read: (wanted, at) => {
        reads += 1;
        return store.read(wanted, at);
      },
      async *watch(prefix, from, signal) {
        if (isBlocked) throw new Error("no way through");
        if (cutting.signal.aborted) cutting = new AbortController();
        const cut = cutting.signal;
        yield* store.watch(prefix, from, AbortSignal.any([signal, cut]));
        lost.resolve();
        if (cut.aborted) throw new Error("cut");
      },
    } satisfies FollowedStore,
  };
}
