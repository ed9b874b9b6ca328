/**
 * All that the rest of the program may know about a datastore.
 *
 * Keys and values are opaque text; keys are ordered by code point, which is
 * the order of their UTF-8 bytes. A revision is the store's own count of
 * commits, kept as text because it may exceed 2^53. `datastore-contract.ts` states every
 * promise below as a test, and each implementation runs it.
 */
import { PluginError } from "../errors.ts";
import type { ServerTime } from "../server-clock.ts";

export interface Entry {
  readonly key: string;
  readonly value: string;
  /** The revision of the commit that wrote this value. */
  readonly revision: string;
}

/** What to read: one key, or the keys below a prefix: at most `limit` entries, starting after the key `after`. */
export type Wanted = (
  | {
      readonly kind: "key";
      readonly key: string;
      /** The object of the orchestrator's API as the caller has just read it: used once instead of a request. */
      readonly seen?: string;
    }
  | {
      readonly kind: "prefix";
      readonly prefix: string;
      readonly limit?: number;
      readonly after?: string;
      /** Only records of this node are needed: a store that can select them leaves out the others. */
      readonly node?: string;
      /** Absent: the present state is needed. A store may return it in any case. */
      readonly enough?: EnoughState;
    }
) & {
  /**
   * For `transact()`: the decision may not need it, and asks for it if it does. A store that needs a request for each
   * may leave it out of the first read: then it is not among what was `Answered`.
   */
  readonly optional?: true;
};

/** For a reader that follows what changes after the revision of what it reads. */
export interface EnoughState {
  /** A state of this revision, or a later one; absent: one since this store was opened, as of a list that failed halfway. */
  readonly notOlderThan?: string;
}

/**
 * `answers[i]` is the result of `wanted[i]`, sorted by key; all of them are the state at one `revision`. A store that
 * commits one object at a time may read each separately: then `revision` is the lowest of those that its lists have, so
 * that a watch from it misses nothing, or "0" if keys alone were read.
 */
export interface Snapshot {
  readonly revision: string;
  /** The highest of those revisions: what was read shows changes up to it. Absent: all have the same. */
  readonly highest?: string;
  readonly answers: readonly (readonly Entry[])[];
}

/**
 * One change of a commit. The comment names the reasons for which it may be refused. `node`: whose record it is, if
 * neither key nor value says so; a store that selects by node keeps it beside the value, also through later changes.
 */
export type Change =
  /** "exists" */
  | { readonly kind: "create"; readonly key: string; readonly value: string; readonly node?: string }
  /** "stale" or "missing" */
  | {
      readonly kind: "update";
      readonly key: string;
      readonly value: string;
      readonly revision: string;
      readonly node?: string;
    }
  /** "stale" or "missing" */
  | { readonly kind: "delete"; readonly key: string; readonly revision: string }
  /** never refused */
  | { readonly kind: "put"; readonly key: string; readonly value: string }
  /** Writes nothing, but is a precondition of the others: unchanged since `revision` ("stale", "missing"), or absent ("exists"). */
  | { readonly kind: "expect"; readonly key: string; readonly revision: string | undefined };

/**
 * Writes a key again that an earlier change of the same list wrote, or deletes it again (`undefined`): "stale" or
 * "missing" if another wrote it in between. If all changes are committed at once, only the last value is ever seen.
 */
export interface Rewrite {
  readonly kind: "rewrite";
  readonly key: string;
  readonly value: string | undefined;
}

/** The order is part of the meaning: see `Atomicity`. */
export type OrderedChange = Change | Rewrite;

/**
 * What `commit()` promises of a list of changes.
 *
 *   all changes   all or nothing, at one moment
 *   one object    each by itself, in the order given, each guarded by its own revision; it stops at the first that is
 *                 refused or fails, and what came before stays written. An "expect" is checked when its turn comes and
 *                 guards nothing after that: no decision may rest on it for safety.
 *
 * Every list is therefore ordered so that a stop after any of its changes is harmless
 * (docs/decisions/two-levels-of-atomicity.md).
 */
export type Atomicity = "all changes" | "one object";

/**
 * A lost race is an ordinary result: the caller reads again and decides again. `revision` is that of the last entry
 * written; a deletion has one only in a store that commits all changes at once.
 */
export type Written =
  | { readonly ok: true; readonly revision: string }
  | {
      readonly ok: false;
      readonly reason: "exists" | "stale" | "missing";
      readonly key: string;
      /** The changes before this one are written and stay. Only of a store that commits one object at a time. */
      readonly partly?: true;
    };

/** What one read was asked for, and what it returned: `answers[i]` belongs to `wanted[i]`. */
export interface Answered {
  readonly wanted: readonly Wanted[];
  readonly answers: Snapshot["answers"];
}

/** What to do next: read more, or commit. Nothing to change is an empty list of changes. */
export type Decision<Outcome> =
  | { readonly kind: "read"; readonly wanted: readonly Wanted[] }
  | { readonly kind: "commit"; readonly changes: readonly OrderedChange[]; readonly outcome: Outcome };

/**
 * A pure function of everything read so far, the first read first. A store may call it more often than it commits, also
 * with results that it only assumes: what it throws or returns then counts only once the assumption is verified.
 */
export type Decide<Outcome> = (reads: readonly Answered[]) => Decision<Outcome>;

/** The final decision, and whether it was committed. */
export interface Transacted<Outcome> {
  readonly written: Written;
  readonly changes: readonly OrderedChange[];
  readonly outcome: Outcome;
}

/**
 * A bookmark says that every event up to its revision has been delivered; it is
 * the one place to resume from, since several events may share a revision.
 */
export type DatastoreEvent =
  | { readonly kind: "put"; readonly entry: Entry }
  | { readonly kind: "delete"; readonly key: string; readonly revision: string }
  | {
      readonly kind: "bookmark";
      readonly revision: string;
      /** Only because the watch was accepted, and the last ones that were have delivered nothing: it confirms nothing. */
      readonly isUnheard?: true;
      /** Nothing that is watched will ever exist: there is nothing more to hear. */
      readonly isFinal?: true;
    };

export interface Datastore {
  readonly atomicity: Atomicity;
  /**
   * Its records are objects of the orchestrator's API. So it contains the endpoints of services, which rules of policies can
   * match; and an endpoint is its pod, whose users can write what the plugin recorded in it.
   */
  readonly isOrchestratorApi?: boolean | undefined;
  /**
   * The state at one revision, in one round trip for up to 128 keys and prefixes; each 128 more take one more.
   * `at` asks for the state at a past revision: a store that keeps old values (etcd) returns that state, or throws
   * `HistoryGone`; any other returns the present state. The snapshot's `revision` says which.
   */
  read(wanted: readonly Wanted[], at?: string): Promise<Snapshot>;
  /**
   * At most 128 changes; a key is named twice only by a rewrite. Names the first change that was refused. One round trip
   * if all changes are committed at once, otherwise one for each.
   */
  commit(changes: readonly OrderedChange[]): Promise<Written>;
  /**
   * One attempt at read, decide, commit, in as few round trips as the store can: two if the decision needs no further
   * read, one if the store caches enough to decide first and lets the commit verify that nothing has changed.
   */
  transact<Outcome>(wanted: readonly Wanted[], decide: Decide<Outcome>): Promise<Transacted<Outcome>>;
  /**
   * The next read of each of these whole prefixes may return its state of now. Only of a store that needs a request for
   * each: it sends them while its caller waits for something else. A failure is reported by that read.
   */
  prefetch?(prefixes: readonly string[]): void;
  /**
   * The time by the clock of the server, which its responses have told; `undefined`, or absent, if none has: then there is
   * only the clock of this host. "lost": a store that remembers what it read reads again before it decides. It sends no
   * request.
   */
  clock?(): ServerTime;
  /**
   * Every event below the prefix after the revision `from`, in order and without
   * gaps, with a bookmark after each batch. Ends when the signal fires or the store is
   * closed; throws `HistoryGone` when the store no longer knows what happened since. In a store that keeps each object by
   * itself, the records below a prefix may be in several collections: then the order is that of each of them, a bookmark
   * is what all of them have reached, and a watch from it repeats the events of those that were ahead.
   */
  watch(prefix: string, from: string, signal: AbortSignal): AsyncIterable<DatastoreEvent>;
  /** Ends every watch and closes files and connections. May be called twice. */
  close(): Promise<void>;
}

/** The events since a revision are no longer available: read everything again, and watch from there. */
export class HistoryGone extends PluginError {
  constructor(from: string, cause?: unknown) {
    const message = `Cannot resume from revision ${from}: the datastore no longer holds the history since then`;
    super("try-again-later", message, { cause });
  }
}
