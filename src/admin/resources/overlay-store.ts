/**
 * A datastore that keeps its commits to itself: reads show them on top of
 * another datastore, which is never written to. Commands try their work on it,
 * for `--dry-run`, `diff`, and to check everything before the first write.
 */
import type { Change, Datastore, Entry, OrderedChange, Snapshot, Wanted, Written } from "../../datastore/datastore.ts";
import { compareKeys } from "../../datastore/key-order.ts";
import { asOneTransaction } from "../../datastore/ordered-changes.ts";
import { findRefusal } from "../../datastore/preconditions.ts";
import { transactOn } from "../../datastore/transact.ts";

export function openOverlay(store: Datastore): Datastore {
  const overlay = new Overlay(store);
  const datastore: Datastore = {
    atomicity: "all changes",
    isOrchestratorApi: store.isOrchestratorApi,
    read: (wanted, at) => overlay.read(wanted, at),
    commit: (changes) => overlay.commit(changes),
    transact: (wanted, decide) => transactOn(datastore, wanted, decide),
    // Its own commits are not events: nobody else can see them.
    watch: (prefix, from, signal) => store.watch(prefix, from, signal),
    close: async () => {},
  };
  return datastore;
}

class Overlay {
  /** `undefined`: deleted. */
  private readonly pending = new Map<string, Entry | undefined>();
  private commits = 0;

  constructor(private readonly store: Pick<Datastore, "read">) {}

  async read(wanted: readonly Wanted[], at?: string): Promise<Snapshot> {
    const { revision, answers } = await this.store.read(
      wanted.map((each) => this.enlarged(each)),
      at,
    );
    return { revision, answers: wanted.map((each, index) => this.merged(each, answers[index] ?? [])) };
  }

  async commit(ordered: readonly OrderedChange[]): Promise<Written> {
    const changes = asOneTransaction(ordered);
    const { revision, answers } = await this.read(changes.map(({ key }) => ({ kind: "key", key })));
    const current = new Map(answers.flat().map((entry) => [entry.key, entry.revision]));
    const refusal = findRefusal(changes, (key) => current.get(key));
    if (refusal) return refusal;
    if (changes.every(({ kind }) => kind === "expect")) return { ok: true, revision };
    this.commits += 1;
    const own = `uncommitted-${this.commits}`;
    for (const change of changes) this.keep(change, own);
    return { ok: true, revision: own };
  }

  private keep(change: Change, revision: string): void {
    if (change.kind === "expect") return;
    const { key } = change;
    this.pending.set(key, change.kind === "delete" ? undefined : { key, value: change.value, revision });
  }

  /** Asks for as many entries more as may be deleted here, so that a full page stays full. */
  private enlarged(wanted: Wanted): Wanted {
    if (wanted.kind === "key" || wanted.limit === undefined) return wanted;
    return { ...wanted, limit: wanted.limit + this.pendingBelow(wanted).length };
  }

  private merged(wanted: Wanted, stored: readonly Entry[]): readonly Entry[] {
    const own = this.pendingBelow(wanted);
    if (own.length === 0) return stored;
    const changed = new Map(own);
    const entries = [...stored.filter(({ key }) => !changed.has(key)), ...own.flatMap(([, entry]) => entry ?? [])];
    const sorted = entries.toSorted((left, right) => compareKeys(left.key, right.key));
    return wanted.kind === "prefix" ? sorted.slice(0, wanted.limit) : sorted;
  }

  private pendingBelow(wanted: Wanted): readonly (readonly [string, Entry | undefined])[] {
    if (wanted.kind === "key") return this.pending.has(wanted.key) ? [[wanted.key, this.pending.get(wanted.key)]] : [];
    const { prefix, after } = wanted;
    return [...this.pending].filter(
      ([key]) => key.startsWith(prefix) && (after === undefined || compareKeys(key, after) > 0),
    );
  }
}
