/**
 * A store that stays open between calls and remembers what it showed them and
 * what they wrote, so that the next one is decided without reading first and
 * its commit proves it right.
 *
 *   memory ── decide ──> commit, if all of it is still so ──> done
 *     │ leads to no commit      │ it is not: the refusal brings the first read along
 *     v                         v
 *   first read ───────────── decide, and so on as without memory
 *
 * The truth is the store's alone: what is remembered is only ever compared with
 * it. After any failure, even one that was overcome by trying again, everything
 * is forgotten; so it is when the store has gone back, restored from an older
 * copy: from there on a revision may mean something else.
 */
import type {
  DatastoreEvent,
  Decide,
  Decision,
  OrderedChange,
  Snapshot,
  Transacted,
  Wanted,
  Written,
} from "../datastore.ts";
import { asOneTransaction } from "../ordered-changes.ts";
import { transactFrom } from "../transact.ts";
import type { Guess, Proven, ProvingDatastore } from "./proving.ts";
import { Recollection } from "./recollection.ts";

/** `failures`: how many attempts at the store have failed so far. */
export function rememberingStore(store: ProvingDatastore, failures: () => number): RememberingDatastore {
  return new RememberingDatastore(store, failures);
}

export class RememberingDatastore implements ProvingDatastore {
  readonly atomicity = "all changes";
  private recollection = new Recollection();
  private failuresSeen = 0;
  /** The latest revision that was answered since everything was forgotten. */
  private latest = 0n;

  constructor(
    private readonly store: ProvingDatastore,
    private readonly failures: () => number,
  ) {}

  async read(wanted: readonly Wanted[], at?: string): Promise<Snapshot> {
    // The past proves nothing to a commit of now.
    if (at !== undefined) return this.store.read(wanted, at);
    const snapshot = await this.ask(
      () => this.store.read(wanted),
      ({ revision }) => revision,
    );
    this.remembered().learnRead(wanted, snapshot);
    return snapshot;
  }

  async commit(given: readonly OrderedChange[]): Promise<Written> {
    const changes = asOneTransaction(given);
    const written = await this.ask(
      () => this.store.commit(changes),
      (answer) => (answer.ok ? answer.revision : undefined),
    );
    if (written.ok) this.remembered().learnCommit(changes, written.revision);
    return written;
  }

  async transact<Outcome>(wanted: readonly Wanted[], decide: Decide<Outcome>): Promise<Transacted<Outcome>> {
    const guess = this.recall(wanted);
    const guessed = guess && decideFromMemory(guess, decide);
    if (!guessed) return transactFrom(this, { wanted, snapshot: await this.read(wanted) }, decide);

    const { changes, outcome } = guessed;
    const proven = await this.commitIfUnchanged(guess, changes);
    if (proven.ok) return { written: proven, changes, outcome };
    return transactFrom(this, { wanted, snapshot: proven.snapshot }, decide);
  }

  async commitIfUnchanged(guess: Guess, given: readonly OrderedChange[]): Promise<Proven> {
    const changes = asOneTransaction(given);
    const proven = await this.ask(
      () => this.store.commitIfUnchanged(guess, changes),
      (answer) => (answer.ok ? answer.revision : answer.snapshot.revision),
    );
    if (proven.ok) this.remembered().learnProven(guess, changes, proven.revision);
    else this.remembered().learnRead(guess.wanted, proven.snapshot);
    return proven;
  }

  /** What a read would probably return; `undefined` if too little is known. */
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
    this.latest = 0n;
    this.recollection = new Recollection();
  }

  private async ask<Answer>(
    request: () => Promise<Answer>,
    revisionOf: (answer: Answer) => string | undefined,
  ): Promise<Answer> {
    // Answers may overtake each other; what is asked now is answered of now or later.
    const { latest } = this;
    try {
      const answer = await request();
      this.notice(revisionOf(answer), latest);
      return answer;
    } catch (error) {
      this.forget();
      throw error;
    }
  }

  private notice(answered: string | undefined, earliest: bigint): void {
    if (answered === undefined) return;
    const revision = BigInt(answered);
    if (revision < earliest) this.forget();
    if (revision > this.latest) this.latest = revision;
  }
}

/** Only a commit proves what it rests on. Nothing to do, a reason to refuse, more to read: all that is for a real read to find. */
function decideFromMemory<Outcome>(
  guess: Guess,
  decide: Decide<Outcome>,
): Extract<Decision<Outcome>, { kind: "commit" }> | undefined {
  try {
    const decision = decide([guess]);
    return decision.kind === "commit" && decision.changes.length > 0 ? decision : undefined;
  } catch {
    return undefined;
  }
}
