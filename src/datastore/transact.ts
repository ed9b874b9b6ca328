/**
 * `transact()` implemented with `read()` and `commit()`: for every store that has no cheaper way, and for wrappers that
 * change what a read or a commit does.
 */
import type { Answered, Datastore, Decide, Snapshot, Transacted, Wanted } from "./datastore.ts";

type ReadAndCommit = Pick<Datastore, "read" | "commit">;

export async function transactOn<Outcome>(
  store: ReadAndCommit,
  wanted: readonly Wanted[],
  decide: Decide<Outcome>,
): Promise<Transacted<Outcome>> {
  return transactFrom(store, { wanted, snapshot: await store.read(wanted) }, decide);
}

/** Starts from a first read that was already made. */
export async function transactFrom<Outcome>(
  store: ReadAndCommit,
  first: { readonly wanted: readonly Wanted[]; readonly snapshot: Snapshot },
  decide: Decide<Outcome>,
): Promise<Transacted<Outcome>> {
  let { revision } = first.snapshot;
  let reads: readonly Answered[] = [{ wanted: first.wanted, answers: first.snapshot.answers }];
  for (;;) {
    const decision = decide(reads);
    if (decision.kind === "commit") {
      const { changes, outcome } = decision;
      const written = changes.length === 0 ? ({ ok: true, revision } as const) : await store.commit(changes);
      return { written, changes, outcome };
    }
    const { wanted } = decision;
    const more = await store.read(wanted);
    revision = more.revision;
    reads = [...reads, { wanted, answers: more.answers }];
  }
}
