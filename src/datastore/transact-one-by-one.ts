/**
 * `transact()` of a store with a request for each record. What is optional is read only if the decision asks for it. An expectation is a
 * check there that guards nothing afterwards: what the same transaction has just
 * read is not read again for it.
 */
import type { Answered, Change, Datastore, Decide, OrderedChange, Transacted, Wanted } from "./datastore.ts";
import { transactOn } from "./transact.ts";

export async function transactOneByOne<Outcome>(
  store: Pick<Datastore, "read" | "commit">,
  wanted: readonly Wanted[],
  decide: Decide<Outcome>,
  /** Whether an expectation of a commit has to be sent to the store, met or not. */
  checks: (expected: Change, changes: readonly OrderedChange[]) => boolean = () => false,
): Promise<Transacted<Outcome>> {
  let reads: readonly Answered[] = [];
  const remembering: Decide<Outcome> = (answered) => {
    reads = answered;
    return decide(answered);
  };
  const commit = async (changes: readonly OrderedChange[]) => {
    const needed = changes.filter(
      (change) => change.kind !== "expect" || checks(change, changes) || !isMet(change, reads),
    );
    return needed.length === 0 ? { ok: true as const, revision: "0" } : store.commit(needed);
  };
  const needed = wanted.filter(({ optional }) => optional === undefined);
  return transactOn({ read: (asked) => store.read(asked), commit }, needed, remembering);
}

/** Whether what was read meets the expectation. */
export function isMet({ key, revision }: Extract<Change, { kind: "expect" }>, reads: readonly Answered[]): boolean {
  const found = reads.toReversed().flatMap(({ answers }) => answers.flat().find((entry) => entry.key === key) ?? [])[0];
  if (found) return found.revision === revision;
  return (
    revision === undefined && reads.some(({ wanted }) => wanted.some((each) => each.kind === "key" && each.key === key))
  );
}
