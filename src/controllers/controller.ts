/**
 * A controller keeps records of the datastore as they should be. It only decides; `run-controller.ts` follows, writes and
 * tries again.
 *
 *   orchestrator's objects ─┐
 *                           ├─ change of a key ──> queue ──> decide(key) ──> commit, guarded by the revisions it was decided from
 *   the datastore's records ┘                        ^
 *                every key, once in each period ─────┘
 */
import type { OrderedChange } from "../datastore/datastore.ts";
import type { RemovedShare } from "../ipam/removal-brake.ts";
import type { Facts, FactsUpdate, OrchestratorKind, StoredKind } from "./facts.ts";

/** What to write, and why, in words for the log. */
export interface Proposal {
  readonly changes: readonly OrderedChange[];
  readonly reason: string;
  /**
   * A fact that must still hold at the orchestrator's API itself, not in the copy of it, which may be old (a standby whose
   * watches went silent unnoticed becomes the leader): asked just before the commit. For every deletion of what belongs to
   * one of its objects.
   */
  readonly confirm?: Confirmation;
}

/** The orchestrator has no object with this key now. */
export interface Confirmation {
  readonly absent: string;
}

export interface ProposedRemovals {
  readonly keys: readonly string[];
  /** How many records it has. */
  readonly total: number;
  /** What others delete once these records are gone. */
  readonly consequences?: readonly RemovedShare[];
}

export interface Controller {
  /** As in the settings and in metrics: `policy`. */
  readonly name: string;
  readonly follows: { readonly orchestrator: readonly OrchestratorKind[]; readonly stored: readonly StoredKind[] };
  /** The keys that a change may concern. */
  keysOf(update: FactsUpdate): Iterable<string>;
  /** Every key that exists, or should. */
  allKeys(facts: Facts): Iterable<string>;
  /** The records that it would delete, all together; absent if it deletes only what a setting says. */
  removals?(facts: Facts): ProposedRemovals;
  /** Pure. `undefined`: the key is as it should be. */
  decide(key: string, facts: Facts): Proposal | undefined;
}
