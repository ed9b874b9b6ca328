/**
 * Random commits on one side, a replica behind a faulty connection on the other:
 * everything it shows must be a state that the store was in.
 */
import { expect } from "bun:test";
import { LIMIT_MILLISECONDS, type Subject } from "../../datastore-contract/subject.ts";
import type { Replica, ReplicaOptions, Update } from "../../replica.ts";
import type { FollowedStore } from "../feed.ts";
import type { WatchGrouping } from "../kinds.ts";
import { faultyStore } from "./faulty-store.ts";
import {
  commitSomething,
  RecordedHistory,
  replayChanges,
  seededRandom,
  stateOf,
  type Values,
} from "./recorded-history.ts";

/** Short pauses and small pages, so that a test has many of each. */
export const IMPATIENT = { firstPauseMilliseconds: 1, longestPauseMilliseconds: 20, pageSize: 3, largestPageSize: 6 };

/** A random history continues until the replica has shown this many of its states. */
const ENOUGH_UPDATES = 10;

interface Trial {
  readonly seed: number;
  readonly watches: WatchGrouping;
  readonly start: (store: FollowedStore, options: Partial<ReplicaOptions>) => Replica<Values>;
}

export async function checkHistory(subject: Subject, { seed, watches, start }: Trial): Promise<void> {
  const random = seededRandom(seed);
  const history = new RecordedHistory();
  for (let count = 0; count < 20; count++) await commitSomething(history, subject.store, random);
  const connection = await subject.another();
  const limits = { ...IMPATIENT, quietMilliseconds: 50 };
  const replica = start(faultyStore(connection, random), { watches, random, limits });
  const done = new AbortController();
  const shown: Update<Values>[][] = [[], []];
  const [quick = [], slow = []] = shown;
  const consumers = [
    consume(replica.updates(done.signal), quick, async () => {}),
    consume(replica.updates(done.signal), slow, () => Bun.sleep(random() * 20)),
  ];

  const writers = await Promise.all([1, 2].map(() => subject.another()));
  await Promise.all(
    writers.map(async (writer) => {
      for (let count = 0; count < 50 || (quick.length < ENOUGH_UPDATES && count < 5_000); count++) {
        await commitSomething(history, writer, random);
        if (random() < 0.03) await subject.forgetHistory();
        await Bun.sleep(random() * 4);
      }
      await writer.close();
    }),
  );
  const { revision } = await subject.store.read([]);
  await untilShown(replica, history, revision);
  done.abort();
  await Promise.all(consumers);
  for (const updates of shown) requireTrue(updates, history, watches);
  expect(quick.length).toBeGreaterThanOrEqual(ENOUGH_UPDATES);
  await connection.close();
}

async function consume(
  updates: AsyncIterable<Update<Values>>,
  seen: Update<Values>[],
  pause: () => Promise<void>,
): Promise<void> {
  for await (const update of updates) {
    seen.push(update);
    await pause();
  }
}

async function untilShown(replica: Replica<Values>, history: RecordedHistory, revision: string): Promise<void> {
  const end = performance.now() + LIMIT_MILLISECONDS;
  const shown = () => replica.snapshot && [stateOf(replica.snapshot.pods), stateOf(replica.snapshot.policies)];
  const expected = [history.stateAt(revision, "pods"), history.stateAt(revision, "policies")];
  while (!Bun.deepEquals(shown(), expected)) {
    if (performance.now() > end) expect(shown()).toEqual(expected);
    await Bun.sleep(2);
  }
}

/** Each update is a state that the store was in, and its changes lead there from the previous one. */
function requireTrue(updates: readonly Update<Values>[], history: RecordedHistory, watches: WatchGrouping): void {
  const known: { -readonly [Kind in keyof Values]: ReturnType<typeof stateOf> } = { pods: {}, policies: {} };
  for (const update of updates) {
    const { snapshot } = update;
    for (const kind of ["pods", "policies"] as const) {
      known[kind] = replayChanges(known[kind], update, kind);
      expect(stateOf(snapshot[kind])).toEqual(history.stateAt(snapshot[kind].revision, kind));
      expect(stateOf(snapshot[kind])).toEqual(known[kind]);
    }
    if (watches === "together") expect(snapshot.pods.revision).toBe(snapshot.policies.revision);
  }
}
