/**
 * Read, decide, commit; after a lost race, again from the start.
 *
 *   memory ── decide ──> commit, if all of it is still so ──> done
 *     │ leads to no commit      │ it is not: the refusal brings the first read along
 *     v                         v
 *   first read ───────────── decide ──> commit ──> done
 *                             │  ^         └── lost: wait a little, first read again
 *                   needs more└──┘ one bundled read
 *
 * The only place of the allocator that talks to the datastore. A decision is a
 * pure function of the facts; a caller may have its own keys read and its own
 * changes committed in the same round trips (`Alongside`).
 */
import { counted } from "../counted.ts";
import type { Change, Datastore, Entry, Guess, Snapshot, Wanted } from "../datastore/datastore.ts";
import { MOST_IN_ONE_REQUEST } from "../datastore/preconditions.ts";
import { PluginError } from "../errors.ts";
import { Facts } from "./facts.ts";

export type Decision<Outcome> =
  | { readonly kind: "read"; readonly wanted: readonly Wanted[] }
  | { readonly kind: "commit"; readonly changes: readonly Change[]; readonly outcome: Outcome };

export interface Work<Outcome> {
  /** For messages: `assign addresses to "net.abc"`. */
  readonly action: string;
  /** What to read first. `again`: the keys the last, lost attempt rested on. */
  readonly first: (again: readonly string[]) => readonly Wanted[];
  readonly decide: (facts: Facts) => Decision<Outcome>;
  /** Whether a datastore that remembers is believed for as long as it takes its commit to prove it. */
  readonly mayGuess?: true;
}

/** What a caller wants read and written in the same round trips. */
export interface Alongside<Outcome> {
  readonly wanted: readonly Wanted[];
  /** Called before anything is decided; may throw to refuse all of it. */
  readonly check?: (answers: readonly (readonly Entry[])[]) => void;
  /** `answers[i]` belongs to `wanted[i]`. Called before every commit; may throw to refuse it. */
  readonly changes: (answers: readonly (readonly Entry[])[], outcome: Outcome) => readonly Change[];
}

/** How patiently a lost race is tried again. */
export interface Pace {
  readonly random: () => number;
  readonly wait: (milliseconds: number) => Promise<void>;
  readonly attempts?: number;
  /** Called once a search grows long: nobody need wait for its end. */
  readonly leave?: () => void;
}

const ATTEMPTS = 100;
/** More reads than this for one decision can only be a fault. */
const READS = 200;
/** A search that needs so many is one through all blocks that exist. */
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
  const attempts = pace.attempts ?? ATTEMPTS;
  const guessed = await settleFromMemory(store, work, alongside);
  if (guessed.kind === "settled") return guessed.settled;

  let read = guessed.read;
  let again: readonly string[] = [];
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const wanted = firstWanted(work, alongside, again);
    const snapshot = read ?? (await store.read(wanted));
    read = undefined;
    const { facts, answers } = understand(wanted, snapshot, alongside);
    alongside?.check?.(answers);

    const { changes, outcome } = await decideWithFacts(store, work, { facts, pace });
    const all = [...changes, ...(alongside?.changes(answers, outcome) ?? [])];
    if (all.length === 0 || (await store.commit(all)).ok) return { outcome, facts };

    again = changes.map((change) => change.key);
    await pace.wait(pace.random() * Math.min(2 ** attempt, LONGEST_WAIT));
  }
  throw new PluginError(
    "try-again-later",
    `Cannot ${work.action}: lost the race against others ${counted(attempts, "time")}`,
  );
}

function firstWanted<Outcome>(
  work: Work<Outcome>,
  alongside: Alongside<Outcome> | undefined,
  again: readonly string[],
): readonly Wanted[] {
  return [...work.first(again), ...(alongside?.wanted ?? [])];
}

/** The facts for the decision, and the caller's own answers. */
function understand<Outcome>(
  wanted: readonly Wanted[],
  snapshot: Pick<Snapshot, "answers">,
  alongside: Alongside<Outcome> | undefined,
) {
  const facts = new Facts();
  facts.learn(wanted, snapshot);
  return { facts, answers: snapshot.answers.slice(wanted.length - (alongside?.wanted.length ?? 0)) };
}

type Guessed<Outcome> =
  | { readonly kind: "settled"; readonly settled: Settled<Outcome> }
  /** `read`: the first read, where the datastore was asked at all. */
  | { readonly kind: "open"; readonly read: Snapshot | undefined };

/** One request, if what is remembered is still so; otherwise no more requests than without memory. */
async function settleFromMemory<Outcome>(
  store: Datastore,
  work: Work<Outcome>,
  alongside: Alongside<Outcome> | undefined,
): Promise<Guessed<Outcome>> {
  const guess = work.mayGuess && store.recall?.(firstWanted(work, alongside, []));
  const plan = guess && planFromMemory(guess, work, alongside);
  if (!plan || !store.commitIfUnchanged) return { kind: "open", read: undefined };
  const proven = await store.commitIfUnchanged(guess, plan.changes);
  return proven.ok ? { kind: "settled", settled: plan } : { kind: "open", read: proven.snapshot };
}

/** Only a commit proves what it rests on. Nothing to do, a reason to refuse, more to read: all that is for a real read to find. */
function planFromMemory<Outcome>(
  guess: Guess,
  work: Work<Outcome>,
  alongside: Alongside<Outcome> | undefined,
): (Settled<Outcome> & { readonly changes: readonly Change[] }) | undefined {
  const { facts, answers } = understand(guess.wanted, guess, alongside);
  try {
    alongside?.check?.(answers);
    const decision = work.decide(facts);
    if (decision.kind === "read") return undefined;
    const changes = [...decision.changes, ...(alongside?.changes(answers, decision.outcome) ?? [])];
    return changes.length === 0 ? undefined : { outcome: decision.outcome, facts, changes };
  } catch {
    return undefined;
  }
}

async function decideWithFacts<Outcome>(
  store: Datastore,
  work: Work<Outcome>,
  { facts, pace }: { readonly facts: Facts; readonly pace: Pace },
): Promise<Extract<Decision<Outcome>, { kind: "commit" }>> {
  for (let reads = 0; reads < READS; reads++) {
    const decision = work.decide(facts);
    if (decision.kind === "commit") return decision;
    if (reads === LONG_SEARCH) pace.leave?.();
    // What does not fit into one request is asked for again by the next decision.
    const wanted = decision.wanted.slice(0, MOST_IN_ONE_REQUEST);
    facts.learn(wanted, await store.read(wanted));
  }
  throw new PluginError("internal", `Cannot ${work.action}: no decision after ${READS} reads`);
}
