/**
 * The promises of `Datastore` as tests: the whole obligation of a new datastore
 * is to run this suite.
 */
import { afterEach, beforeEach, describe } from "bun:test";
import type { Datastore } from "./datastore.ts";
import { testPreconditions } from "./datastore-contract/commits.ts";
import { testHalfCommits, testOddities, testReading } from "./datastore-contract/reads.ts";
import { testAtomicity, testOrder, testSeveralChanges } from "./datastore-contract/several-changes.ts";
import type { Subject } from "./datastore-contract/subject.ts";
import { testTransactions } from "./datastore-contract/transactions.ts";
import { testClosing, testLargeRevisions, testWatching } from "./datastore-contract/watches.ts";

interface Means {
  /** The level it declares, unless that is "all changes". */
  readonly atomicity?: "one object";
  /**
   * "of each object": a read of keys, a met expectation and a deletion do not return the revision of the store; see
   * `Snapshot` and `Written`.
   */
  readonly revisions?: "of each object";
  /** Its records are in several collections, and events are ordered in each of them: see `watch()`. */
  readonly order?: "of each collection";
  /** A subject whose revisions start at this number, if the store supports that. */
  readonly openAt?: (firstRevision: bigint) => Promise<Subject>;
}

export function datastoreContract(name: string, open: () => Promise<Subject>, means: Means = {}): void {
  const revisions = means.revisions ?? "of the store";
  describe(`${name} keeps the promises of a datastore`, () => {
    let subject: Subject;
    let store: Datastore;

    beforeEach(async () => {
      subject = await open();
      store = subject.store;
    });

    afterEach(async () => {
      await store.close();
      await subject.dispose();
    });

    describe("commit()", () => testPreconditions(() => store, revisions));
    describe("commit() of several changes", () => {
      testSeveralChanges(() => store);
      if (means.atomicity === "one object") testOrder(() => store);
      else testAtomicity(() => store);
    });
    describe("transact()", () => testTransactions(() => subject, revisions));
    describe("read()", () => testReading(() => store));
    if (means.atomicity === undefined) describe("read() during a commit", () => testHalfCommits(() => store));
    describe("keys and values", () => testOddities(() => store));
    describe("watch()", () => testWatching(() => subject, { revisions, order: means.order ?? "of all events" }));
    describe("close()", () => testClosing(() => subject));
  });

  const { openAt } = means;
  if (openAt) describe(`${name} counts beyond 2^53`, () => testLargeRevisions(openAt));
}
