/** Everything that was committed, so that a snapshot can be compared with the state of the store at its revision. */
import { PluginError } from "../../../errors.ts";
import type { Change, Datastore, Entry } from "../../datastore.ts";
import type { Update } from "../../replica.ts";
import type { KindSnapshot } from "../kind-snapshot.ts";
import type { KindTable } from "../kinds.ts";

export interface Values {
  readonly pods: string;
  readonly policies: string;
}

const UNREADABLE = "unreadable";

export const PREFIXES = { pods: "/r/pods/", policies: "/r/policies/", other: "/r/other/", elsewhere: "/s/" };

export const KINDS: KindTable<Values> = {
  pods: { prefix: PREFIXES.pods, decode },
  policies: { prefix: PREFIXES.policies, decode },
};

function decode({ key, value }: Entry): string | undefined {
  if (value === UNREADABLE) throw new PluginError("record-malformed", `Cannot read "${key}"`);
  return value === "foreign" ? undefined : value;
}

/** The records of a kind at one revision; unreadable ones are marked. */
export type State = Readonly<Record<string, string>>;

export function stateOf(snapshot: KindSnapshot<string>): State {
  return Object.fromEntries([...snapshot, ...snapshot.unreadable.map(({ key }) => [key, UNREADABLE] as const)]);
}

export class RecordedHistory {
  private readonly commits: { readonly revision: bigint; readonly changes: readonly Change[] }[] = [];

  /** Commits, and records what was committed. */
  async commit(store: Datastore, changes: readonly Change[]): Promise<void> {
    const written = await store.commit(changes);
    if (written.ok) this.commits.push({ revision: BigInt(written.revision), changes });
  }

  stateAt(revision: string, kind: keyof Values): State {
    const state = new Map<string, string>();
    const until = this.commits.filter((commit) => commit.revision <= BigInt(revision));
    for (const change of until.toSorted((left, right) => Number(left.revision - right.revision)).flatMap(changesOf)) {
      if (!change.key.startsWith(PREFIXES[kind])) continue;
      if ("value" in change && change.value !== "foreign") state.set(change.key, change.value);
      else state.delete(change.key);
    }
    return Object.fromEntries(state);
  }
}

function changesOf({ changes }: { readonly changes: readonly Change[] }): readonly Change[] {
  return changes;
}

/** The state of a consumer that only follows the changes. */
export function replayChanges(state: State, update: Update<Values>, kind: keyof Values): State {
  const known = new Map(Object.entries(state));
  for (const change of update.changes[kind]) {
    if (change.kind === "delete") known.delete(change.key);
    else known.set(change.key, change.kind === "put" ? change.value : UNREADABLE);
  }
  return Object.fromEntries(known);
}

const VALUES = ["a", "b", "c", "d", "foreign", UNREADABLE];

/** One random commit of up to four changes, to keys that are often the same. */
export async function commitSomething(history: RecordedHistory, store: Datastore, random: () => number): Promise<void> {
  const pick = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)] as Item;
  const keys = new Set(
    Array.from({ length: 1 + Math.floor(random() * 4) }, () => `${pick(Object.values(PREFIXES))}${pick(NAMES)}`),
  );
  const changes: Change[] = [];
  for (const key of keys) {
    const entry = random() < 0.4 ? (await store.read([{ kind: "key", key }])).answers[0]?.[0] : undefined;
    if (entry) changes.push({ kind: "delete", key, revision: entry.revision });
    else changes.push({ kind: "put", key, value: pick(VALUES) });
  }
  await history.commit(store, changes);
}

const NAMES = Array.from({ length: 12 }, (_, index) => `name-${index}`);

/** Numbers from 0 up to 1 that are the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
