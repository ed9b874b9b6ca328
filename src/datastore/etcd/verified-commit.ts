/** A store that commits and verifies the assumed result of a read in one request. Used only by the etcd store and its tests. */
import type { Answered, Datastore, OrderedChange, Snapshot } from "../datastore.ts";

/** What a read is assumed to return: not to be relied on until a commit has verified it. */
export type AssumedRead = Answered;

/** Committed, and every assumption was true at that moment; or nothing was written, and this is the result of the read. */
export type VerifiedCommit =
  | { readonly ok: true; readonly revision: string }
  | { readonly ok: false; readonly snapshot: Snapshot };

export interface VerifyingDatastore extends Datastore {
  /**
   * Compares the assumed entries with the store and, if every revision matches, commits: atomically, in one round trip.
   * Otherwise, or if it is too much for one request, returns the result of the read and writes nothing.
   */
  commitIfUnchanged(assumed: AssumedRead, changes: readonly OrderedChange[]): Promise<VerifiedCommit>;
}
