/**
 * Works that share a memory datastore, let go one request at a time: which of
 * them is next says a schedule, so that every order can be tried and a failure
 * can be repeated.
 */
import type { Atomicity, Datastore } from "../../src/datastore/datastore.ts";
import { openMemory } from "../../src/datastore/memory/memory.ts";
import type { MemoryTable } from "../../src/datastore/memory/table.ts";

export interface Interleaved {
  readonly table: MemoryTable;
  readonly atomicity: Atomicity;
  readonly works: readonly ((store: Datastore) => Promise<unknown>)[];
  /** The index of the work that is next, for the first requests; afterwards each runs to its end, the first one first. */
  readonly schedule: readonly number[];
  readonly afterEachWrite: () => Promise<void>;
}

/** The outcome of each work, and how many requests it made. */
export async function interleave(given: Interleaved): Promise<readonly { outcome: unknown; requests: number }[]> {
  const actors = given.works.map((work) => new Actor(given.table, given.atomicity, work));
  const left = [...given.schedule];
  for (const actor of actors) await actor.arrived;
  for (;;) {
    const live = actors.filter((actor) => !actor.isDone);
    if (live.length === 0) return actors.map(({ outcome, requests }) => ({ outcome, requests }));
    const chosen = actors[left.shift() ?? -1];
    const next = chosen && !chosen.isDone ? chosen : live[0];
    if ((await next?.step()) === "write") await given.afterEachWrite();
  }
}

class Actor {
  isDone = false;
  outcome: unknown;
  requests = 0;
  /** Resolves when the work stands before its next request, or is done. */
  arrived: Promise<void>;
  private arrive: () => void = () => {};
  private waiting: { readonly kind: "read" | "write"; readonly go: () => void } | undefined;

  constructor(table: MemoryTable, atomicity: Atomicity, work: (store: Datastore) => Promise<unknown>) {
    this.arrived = this.nextArrival();
    const store = openMemory(table, { atomicity, around: (kind, request) => this.atRequest(kind, request) });
    void work(store)
      .catch((error: unknown) => error)
      .then((outcome) => {
        this.outcome = outcome;
        this.isDone = true;
        this.arrive();
      });
  }

  async step(): Promise<"read" | "write" | undefined> {
    const { waiting } = this;
    this.arrived = this.nextArrival();
    waiting?.go();
    await this.arrived;
    return waiting?.kind;
  }

  private async atRequest<Answer>(kind: "read" | "write", request: () => Answer): Promise<Answer> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.waiting = { kind, go: resolve };
    this.arrive();
    await promise;
    this.requests += 1;
    return request();
  }

  private nextArrival(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.arrive = resolve;
    return promise;
  }
}

/** All ways to let the first of two works make so many requests, then the second, and so on in turns. */
export function* turnsOfTwo(most: number, turns: number): Generator<readonly number[]> {
  for (const first of [0, 1]) {
    for (const lengths of lengthsOf(most, turns)) {
      yield lengths.flatMap((length, turn) => Array.from({ length }, () => (first + turn) % 2));
    }
  }
}

function* lengthsOf(most: number, turns: number): Generator<readonly number[]> {
  if (turns === 0) return yield [];
  for (let length = 1; length <= most; length++) {
    for (const rest of lengthsOf(most, turns - 1)) yield [length, ...rest];
  }
}
