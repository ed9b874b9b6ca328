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

export class SharedStores {
  private readonly stores = new Map<string, SharedStore>();

  /** `open` is called if it is not open yet. `close()` of the returned store gives it back. */
  async share(source: Source, open: () => Promise<Datastore>): Promise<Datastore> {
    const { name, oldAfterMilliseconds = Number.POSITIVE_INFINITY } = source;
    const known = this.stores.get(name);
    if (known !== undefined && known.sign === source.sign() && performance.now() < known.oldAt) {
      return this.useOf(name, known);
    }
    if (known !== undefined) this.forget(name, known);

    const store = await open();
    // Another call may have opened it meanwhile; then there are two, and each is closed in its time.
    const oldAt = performance.now() + oldAfterMilliseconds;
    const opened: SharedStore = { sign: source.sign(), oldAt, store, users: 0 };
    this.stores.set(name, opened);
    return this.useOf(name, opened);
  }

  private useOf(name: string, shared: SharedStore): Datastore {
    shared.users += 1;
    clearTimeout(shared.closing);
    const { store } = shared;
    const use = new Use();
    return {
      atomicity: store.atomicity,
      read: (wanted, at) => use.whileOpen(() => store.read(wanted, at)),
      commit: (changes) => use.whileOpen(() => store.commit(changes)),
      transact: (wanted, decide) =>
        use.whileOpen(() => store.transact(wanted, (reads) => decide(use.stillOpen(reads)))),
      watch: (prefix, from, signal) => store.watch(prefix, from, AbortSignal.any([signal, use.untilClosed()])),
      close: async () => {
        if (use.isClosed) return;
        use.close();
        shared.users -= 1;
        if (shared.users > 0) return;
        if (this.stores.get(name) !== shared) await store.close();
        else shared.closing = setTimeout(() => this.forget(name, shared), IDLE_MILLISECONDS).unref();
      },
    };
  }

  /** Closes it now, or with its last user. */
  private forget(name: string, shared: SharedStore): void {
    if (this.stores.get(name) === shared) this.stores.delete(name);
    clearTimeout(shared.closing);
    if (shared.users === 0) void shared.store.close();
  }
}

/** One user's time with the store. Whoever closes it waits no longer for what is under way; mostly nothing is. */
class Use {
  isClosed = false;
  private underWay = 0;
  private readonly closed = Promise.withResolvers<never>();
  private watching: AbortController | undefined;

  async whileOpen<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    this.stillOpen(undefined);
    this.underWay += 1;
    try {
      return await Promise.race([ask(), this.closed.promise]);
    } finally {
      this.underWay -= 1;
    }
  }

  /** Throws for a user who is gone: whoever closes the store midway commits nothing any more. */
  stillOpen<Value>(value: Value): Value {
    if (this.isClosed) throw closedMeanwhile();
    return value;
  }

  untilClosed(): AbortSignal {
    this.watching ??= new AbortController();
    if (this.isClosed) this.watching.abort();
    return this.watching.signal;
  }

  close(): void {
    this.isClosed = true;
    this.watching?.abort();
    if (this.underWay > 0) this.closed.reject(closedMeanwhile());
  }
}

function closedMeanwhile(): PluginError {
  return new PluginError("datastore-unavailable", "Cannot go on with the datastore: it was closed meanwhile");
}
