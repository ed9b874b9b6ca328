/**
 * Read, decide, commit; after a lost race, again from the start.
 *
 *   first read ── decide ──> commit ──> done
 *                  │  ^         └── lost: wait a little, first read again
 *        needs more└──┘ one bundled read
 *
 * The only place of the allocator that talks to the datastore. A decision is a
 * pure function of the facts; a caller may have its own keys read and its own
 * changes committed in the same round trips (`Alongside`).
 */
import type { Change, Datastore, Entry, Wanted } from "../datastore/datastore.ts";
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
  let again: readonly string[] = [];
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const facts = new Facts();
    const extra = alongside?.wanted ?? [];
    const wanted = [...work.first(again), ...extra];
    const snapshot = await store.read(wanted);
    facts.learn(wanted, snapshot);
    const answers = snapshot.answers.slice(wanted.length - extra.length);
    alongside?.check?.(answers);

    const { changes, outcome } = await decideWithFacts(store, work, { facts, pace });
    const all = [...changes, ...(alongside?.changes(answers, outcome) ?? [])];
    if (all.length === 0 || (await store.commit(all)).ok) return { outcome, facts };

    again = changes.map((change) => change.key);
    await pace.wait(pace.random() * Math.min(2 ** attempt, LONGEST_WAIT));
  }
  throw new PluginError("try-again-later", `Cannot ${work.action}: lost the race against others ${attempts} times`);
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
