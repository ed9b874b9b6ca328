/** The memory datastore with what the etcd store alone can do: a commit that proves a guess. */
import type { OrderedChange, Snapshot } from "../../src/datastore/datastore.ts";
import type { Guess, Proven, ProvingDatastore } from "../../src/datastore/etcd/proving.ts";
import { MemoryDatastore } from "../../src/datastore/memory/memory.ts";
import { MemoryTable } from "../../src/datastore/memory/table.ts";
import { asOneTransaction } from "../../src/datastore/ordered-changes.ts";

export function openProvingMemory(table: MemoryTable = new MemoryTable()): ProvingMemory {
  return new ProvingMemory(table);
}

class ProvingMemory extends MemoryDatastore implements ProvingDatastore {
  constructor(private readonly records: MemoryTable) {
    super(records);
  }

  async commitIfUnchanged({ wanted, answers }: Guess, given: readonly OrderedChange[]): Promise<Proven> {
    const changes = asOneTransaction(given);
    this.roundTrips += 1;
    const { records } = this;
    const snapshot = { revision: records.revision, answers: wanted.map((each) => records.answer(each)) };
    const written = isSame(snapshot.answers, answers) ? records.commit(changes) : undefined;
    return written?.ok ? written : { ok: false, snapshot };
  }
}

function isSame(left: Snapshot["answers"], right: Snapshot["answers"]): boolean {
  const named = (answers: Snapshot["answers"]) =>
    JSON.stringify(answers.map((found) => found.map(({ key, revision }) => [key, revision])));
  return named(left) === named(right);
}
