/** The memory datastore with `commitIfUnchanged()`, which otherwise only the etcd store has. */
import type { OrderedChange, Snapshot } from "../../src/datastore/datastore.ts";
import type { AssumedRead, VerifiedCommit, VerifyingDatastore } from "../../src/datastore/etcd/verified-commit.ts";
import { MemoryDatastore } from "../../src/datastore/memory/memory.ts";
import { MemoryTable } from "../../src/datastore/memory/table.ts";
import { asOneTransaction } from "../../src/datastore/ordered-changes.ts";

export function openVerifyingMemory(table: MemoryTable = new MemoryTable()): VerifyingMemory {
  return new VerifyingMemory(table);
}

class VerifyingMemory extends MemoryDatastore implements VerifyingDatastore {
  constructor(private readonly records: MemoryTable) {
    super(records);
  }

  async commitIfUnchanged({ wanted, answers }: AssumedRead, given: readonly OrderedChange[]): Promise<VerifiedCommit> {
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
