/**
 * One open datastore for all calls of a process that stays: to open it anew
 * takes longer than all that a call reads and writes, and forgets which members
 * of etcd are dead and what they said to a password.
 *
 * It is let go when nobody has used it for a while, when it has become old, or
 * when what it was opened from is not the same any more: a file that was moved
 * away, a certificate that was renewed.
 */
import { PluginError } from "../errors.ts";
import type { Datastore } from "./datastore.ts";

const IDLE_MILLISECONDS = 10_000;

export interface Source {
  readonly name: string;
  /** What it is opened from, as text to compare. */
  sign(): string;
  /** After this time it is opened anew, though it is in use; what is old serves its users to their end. */
  readonly oldAfterMilliseconds?: number;
}

interface SharedStore {
  readonly sign: string;
  readonly oldAt: number;
  readonly store: Datastore;
  users: number;
  closing?: ReturnType<typeof setTimeout> | undefined;
}

const stores = new Map<string, SharedStore>();

/** `open` is called where it is not open yet. `close()` of what it answers gives it back. */
export async function shareStore(source: Source, open: () => Promise<Datastore>): Promise<Datastore> {
  const { name, oldAfterMilliseconds = Number.POSITIVE_INFINITY } = source;
  const known = stores.get(name);
  if (known !== undefined && known.sign === source.sign() && performance.now() < known.oldAt) return useOf(name, known);
  if (known !== undefined) forget(name, known);

  const store = await open();
  // Another call may have opened it meanwhile; then there are two, and each is closed in its time.
  const opened: SharedStore = { sign: source.sign(), oldAt: performance.now() + oldAfterMilliseconds, store, users: 0 };
  stores.set(name, opened);
  return useOf(name, opened);
}

function useOf(name: string, shared: SharedStore): Datastore {
  shared.users += 1;
  clearTimeout(shared.closing);
  const { store } = shared;
  const { recall, commitIfUnchanged } = store;
  const closing = new AbortController();
  const closed = whenClosed(closing.signal);
  return {
    read: (wanted) => Promise.race([store.read(wanted), closed]),
    commit: (changes) => Promise.race([store.commit(changes), closed]),
    ...(commitIfUnchanged && {
      commitIfUnchanged: (guess, changes) => Promise.race([commitIfUnchanged.call(store, guess, changes), closed]),
    }),
    ...(recall && { recall: (wanted) => recall.call(store, wanted) }),
    watch: (prefix, from, signal) => store.watch(prefix, from, AbortSignal.any([signal, closing.signal])),
    close: async () => {
      if (closing.signal.aborted) return;
      closing.abort();
      shared.users -= 1;
      if (shared.users > 0) return;
      if (stores.get(name) === shared) shared.closing = setTimeout(forget, IDLE_MILLISECONDS, name, shared).unref();
      else await store.close();
    },
  };
}

/** Whoever closes it waits no longer for what is under way. */
function whenClosed(signal: AbortSignal): Promise<never> {
  const closed = Promise.withResolvers<never>();
  const reason = new PluginError("datastore-unavailable", "Cannot go on with the datastore: it was closed meanwhile");
  signal.addEventListener("abort", () => closed.reject(reason), { once: true });
  closed.promise.catch(() => {});
  return closed.promise;
}

/** Closes it now, or with its last user. */
function forget(name: string, shared: SharedStore): void {
  if (stores.get(name) === shared) stores.delete(name);
  clearTimeout(shared.closing);
  if (shared.users === 0) void shared.store.close();
}
