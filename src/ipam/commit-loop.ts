/**
 * Read, decide, commit; start again after a lost race.
 *
 *   first read ── decide ──> commit ──> done
 *                  │  ^         └── lost: wait a little, first read again
 *        needs more└──┘ one more read
 *
 * The only part of the allocator that uses the datastore; one attempt is the
 * datastore's `transact()`. A decision is a pure function of the facts; a caller
 * may have its own keys read and its own changes committed in the same round trips
 * (`Alongside`).
 */
import { counted } from "../counted.ts";
import type { Answered, Change, Datastore, Decide, Decision, Entry, Wanted } from "../datastore/datastore.ts";
import { MOST_IN_ONE_REQUEST } from "../datastore/preconditions.ts";
import { PluginError } from "../errors.ts";
import { DecodedEntries, Facts, Unread } from "./facts.ts";

export interface Work<Outcome> {
  /** For messages: `assign addresses to "net.abc"`. */
  readonly action: string;
  /** What to read first. `again`: the keys that the previous, lost attempt depended on. */
  readonly first: (again: readonly string[]) => readonly Wanted[];
  readonly decide: (facts: Facts) => Decision<Outcome>;
  /**
   * Called with the outcome of an attempt that lost its race after a part of it was written: only on a datastore that
   * commits one object at a time. Another attempt follows.
   */
  readonly partly?: (outcome: Outcome) => void;
}

/** What a caller wants read and written in the same round trips. */
export interface Alongside<Outcome> {
  readonly wanted: readonly Wanted[];
  /** Called before anything is decided; may throw to refuse all of it. */
  readonly check?: (answers: readonly (readonly Entry[])[]) => void;
  /** `answers[i]` belongs to `wanted[i]`. Called before every commit; may throw to refuse it. */
  readonly changes: (answers: readonly (readonly Entry[])[], outcome: Outcome) => readonly Change[];
  /** Whether these changes come before or after those of the allocator; "after" if absent. */
  readonly order?: "before" | "after";
}

/** How often and how fast a lost race is retried. */
export interface Pace {
  readonly random: () => number;
  readonly wait: (milliseconds: number) => Promise<void>;
  readonly attempts?: number;
  /** Called once a search becomes long, so that others need not wait for its end. */
  readonly leave?: () => void;
  /** Records decoded by earlier calls; none if absent. */
  readonly decoded?: DecodedEntries;
}

const ATTEMPTS = 100;
/** More reads than this for one decision can only be a bug. */
const READS = 200;
/** A search that needs this many reads goes through all existing blocks. */
const LONG_SEARCH = 8;
const LONGEST_WAIT = 64;

export interface Settled<Outcome> {
  readonly outcome: Outcome;
  readonly facts: Facts;
}

export async function settle<Outcome>(
  store: Datastore,
  work: Work<Outcome>,
  pace: Pace,
  alongside?: Alongside<Outcome>,
): Promise<Settled<Outcome>> {
  const { attempts = ATTEMPTS, decoded = new DecodedEntries() } = pace;
  const decide = decideWithFacts(work, { ...pace, decoded }, alongside);
  let again: readonly string[] = [];
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const wanted = [...work.first(again), ...(alongside?.wanted ?? [])];
    const { written, changes, outcome } = await store.transact(wanted, decide);
    if (written.ok) return outcome;

    if (written.partly) work.partly?.(outcome.outcome);
    again = changes.map((change) => change.key);
    await pace.wait(pace.random() * Math.min(2 ** attempt, LONGEST_WAIT));
  }
  throw new PluginError(
    "try-again-later",
    `Cannot ${work.action}: lost the race against others ${counted(attempts, "time")}`,
  );
}

function decideWithFacts<Outcome>(
  work: Work<Outcome>,
  { leave, decoded }: Pick<Pace, "leave"> & { readonly decoded: DecodedEntries },
  alongside: Alongside<Outcome> | undefined,
): Decide<Settled<Outcome>> {
  return (reads) => {
    const facts = factsOf(reads, decoded);
    const answers = ownAnswers(reads, alongside);
    alongside?.check?.(answers);

    const decision = decideOrRead(work, facts);
    if (decision.kind === "commit") {
      const { changes, outcome } = decision;
      const own = alongside?.changes(answers, outcome) ?? [];
      const all = alongside?.order === "before" ? [...own, ...changes] : [...changes, ...own];
      // Preconditions alone were true when they were read: nothing rests on them.
      const writes = all.some(({ kind }) => kind !== "expect");
      return { kind: "commit", changes: writes ? all : [], outcome: { outcome, facts } };
    }
    if (reads.length === LONG_SEARCH + 1) leave?.();
    if (reads.length > READS) {
      throw new PluginError("internal", `Cannot ${work.action}: no decision after ${READS} reads`);
    }
    // What does not fit into one request is requested again by the next decision.
    return { kind: "read", wanted: decision.wanted.slice(0, MOST_IN_ONE_REQUEST) };
  };
}

/** What a decision needs and the first read left out is read next. */
function decideOrRead<Outcome>(work: Work<Outcome>, facts: Facts): Decision<Outcome> {
  try {
    return work.decide(facts);
  } catch (failure) {
    if (failure instanceof Unread) return { kind: "read", wanted: [failure.wanted] };
    throw failure;
  }
}

function factsOf(reads: readonly Answered[], decoded: DecodedEntries): Facts {
  const facts = new Facts(decoded);
  for (const { wanted, answers } of reads) facts.learn(wanted, { answers });
  return facts;
}

/** The caller's own results: they are the last ones of the first read. */
function ownAnswers<Outcome>(
  [first]: readonly Answered[],
  alongside: Alongside<Outcome> | undefined,
): Answered["answers"] {
  const count = alongside?.wanted.length ?? 0;
  return count === 0 ? [] : (first?.answers.slice(-count) ?? []);
}
