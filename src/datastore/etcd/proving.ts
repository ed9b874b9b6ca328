/** A store that can commit and prove a guess in one request. Known only to the etcd store and its tests. */
import type { Answered, Datastore, OrderedChange, Snapshot } from "../datastore.ts";

/** What a read is thought to return: worth nothing until a commit has proven it. */
export type Guess = Answered;

/** Committed, and every guess was right at that moment; or nothing was written, and this is the read itself. */
export type Proven =
  | { readonly ok: true; readonly revision: string }
  | { readonly ok: false; readonly snapshot: Snapshot };

export interface ProvingDatastore extends Datastore {
  /**
   * Reads what was guessed and, if it is the guess to the revision, commits: all in one moment and one round trip.
   * Otherwise, and if it is too much for one request, returns that read and writes nothing.
   */
  commitIfUnchanged(guess: Guess, changes: readonly OrderedChange[]): Promise<Proven>;
}
