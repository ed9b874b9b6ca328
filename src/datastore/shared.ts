/**
 * One open datastore for all calls of a long-running process: opening it again
 * takes longer than all reads and writes of a call, and loses the knowledge of
 * failed etcd members and the authentication tokens.
 *
 * It is closed when it was unused for a while, when it has reached its maximum
 * age, or when its source has changed: a file that was replaced, a certificate
 * that was renewed.
 */
import { PluginError } from "../errors.ts";
import type { Datastore } from "./datastore.ts";

const IDLE_MILLISECONDS = 10_000;

export interface Source {
  readonly name: string;
  /** Identifies the current state of the source, as text to compare. */
  sign(): string;
  /** After this time it is opened again, even if it is in use; current users keep the old one until they close it. */
  readonly oldAfterMilliseconds?: number;
  /** For how long it stays open without a user. */
  readonly idleMilliseconds?: number;
}

interface SharedStore {
  readonly idleMilliseconds: number;
  readonly sign: string;
  readonly oldAt: number;
  readonly store: Datastore;
  users: number;
  closing?: ReturnType<typeof setTimeout> | undefined;
}

export class SharedStores {
  private readonly stores = new Map<string, SharedStore>();

  /** Calls `open` if the store is not open yet. `close()` of the returned store ends this use of it. */
  async share(source: Source, open: () => Promise<Datastore>): Promise<Datastore> {
    const { name, oldAfterMilliseconds = Number.POSITIVE_INFINITY, idleMilliseconds = IDLE_MILLISECONDS } = source;
    const known = this.stores.get(name);
    if (known !== undefined && known.sign === source.sign() && performance.now() < known.oldAt) {
      return this.useOf(name, known);
    }
    if (known !== undefined) this.forget(name, known);

    const store = await open();
    // Another call may have opened it in the meantime; then there are two, and each is closed after its last use.
    const oldAt = performance.now() + oldAfterMilliseconds;
    const opened: SharedStore = { sign: source.sign(), oldAt, store, users: 0, idleMilliseconds };
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
      isOrchestratorApi: store.isOrchestratorApi,
      read: (wanted, at) => use.whileOpen(() => store.read(wanted, at)),
      commit: (changes) => use.whileOpen(() => store.commit(changes)),
      transact: (wanted, decide) =>
        use.whileOpen(() => store.transact(wanted, (reads) => decide(use.stillOpen(reads)))),
      clock: () => store.clock?.(),
      watch: (prefix, from, signal) => store.watch(prefix, from, AbortSignal.any([signal, use.untilClosed()])),
      close: async () => {
        if (use.isClosed) return;
        use.close();
        shared.users -= 1;
        if (shared.users > 0) return;
        if (this.stores.get(name) !== shared) await store.close();
        else shared.closing = setTimeout(() => this.forget(name, shared), shared.idleMilliseconds).unref();
      },
    };
  }

  /** Closes it now, or after its last use. */
  private forget(name: string, shared: SharedStore): void {
    if (this.stores.get(name) === shared) this.stores.delete(name);
    clearTimeout(shared.closing);
    if (shared.users === 0) void shared.store.close();
  }
}

/** One use of the store. After `close()` its pending requests are rejected; usually there are none. */
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

  /** Throws after `close()`, so that a use closed in the middle of `transact()` commits nothing. */
  stillOpen<Value>(value: Value): Value {
    if (this.isClosed) throw closedInUse();
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
    if (this.underWay > 0) this.closed.reject(closedInUse());
  }
}

function closedInUse(): PluginError {
  return new PluginError("datastore-unavailable", "Cannot use the datastore: it was closed in the meantime");
}
