/**
 * A store that stays open between calls and remembers what it showed them and
 * what they wrote, so that the next one can decide without reading first and
 * have its commit prove it right.
 *
 * The truth is the store's alone: what is remembered is only ever compared with
 * it. After any failure, even one that was got over by trying again, everything
 * is forgotten.
 */
import type {
  Change,
  DatastoreEvent,
  Guess,
  Proven,
  ProvingDatastore,
  Snapshot,
  Wanted,
  Written,
} from "./datastore.ts";
import { Recollection } from "./recollection.ts";

/** `failures`: how many attempts at the store have failed so far. */
export function rememberingStore(store: ProvingDatastore, failures: () => number): ProvingDatastore {
  return new RememberingDatastore(store, failures);
}

class RememberingDatastore implements ProvingDatastore {
  private recollection = new Recollection();
  private failuresSeen = 0;

  constructor(
    private readonly store: ProvingDatastore,
    private readonly failures: () => number,
  ) {}

  async read(wanted: readonly Wanted[]): Promise<Snapshot> {
    const snapshot = await this.forgettingOnFailure(() => this.store.read(wanted));
    this.remembered().learnRead(wanted, snapshot);
    return snapshot;
  }

  async commit(changes: readonly Change[]): Promise<Written> {
    const written = await this.forgettingOnFailure(() => this.store.commit(changes));
    if (written.ok) this.remembered().learnCommit(changes, written.revision);
    return written;
  }

  async commitIfUnchanged(guess: Guess, changes: readonly Change[]): Promise<Proven> {
    const proven = await this.forgettingOnFailure(() => this.store.commitIfUnchanged(guess, changes));
    if (proven.ok) this.remembered().learnProven(guess, changes, proven.revision);
    else this.remembered().learnRead(guess.wanted, proven.snapshot);
    return proven;
  }

  recall(wanted: readonly Wanted[]): Guess | undefined {
    return this.remembered().recall(wanted);
  }

  watch(prefix: string, from: string, signal: AbortSignal): AsyncIterable<DatastoreEvent> {
    return this.store.watch(prefix, from, signal);
  }

  close(): Promise<void> {
    this.forget();
    return this.store.close();
  }

  private remembered(): Recollection {
    if (this.failures() !== this.failuresSeen) this.forget();
    return this.recollection;
  }

  private forget(): void {
    this.failuresSeen = this.failures();
    this.recollection = new Recollection();
  }

  private async forgettingOnFailure<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    try {
      return await ask();
    } catch (error) {
      this.forget();
      throw error;
    }
  }
}
