/** The promises of a replica as tests: every store runs them. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { HistoryGone } from "../datastore.ts";
import { LIMIT_MILLISECONDS, put, readKey, type Subject } from "../datastore-contract/subject.ts";
import { type Replica, type ReplicaOptions, startReplica, type Update } from "../replica.ts";
import type { FollowedStore } from "./feed.ts";
import { interruptible } from "./replica-contract/interruptible-store.ts";
import { checkHistory, IMPATIENT } from "./replica-contract/random-histories.ts";
import { KINDS, PREFIXES, stateOf, type Values } from "./replica-contract/recorded-history.ts";

interface Means {
  /** The number of random histories to test; none of a store that does not commit all changes at once. */
  readonly histories: number;
  /** For a store that can only be watched kind by kind. */
  readonly watches?: "per kind";
}

export function replicaContract(name: string, open: () => Promise<Subject>, { histories, watches }: Means): void {
  describe(`a replica on ${name}`, () => {
    let subject: Subject;
    let stop: AbortController;
    const replicas: Replica<Values>[] = [];

    beforeEach(async () => {
      subject = await open();
      stop = new AbortController();
    });
    afterEach(async () => {
      stop.abort();
      await Promise.all(replicas.splice(0).map(({ ended }) => ended));
      await subject.store.close();
      await subject.dispose();
    });

    const start = (store: FollowedStore = subject.store, options: Partial<ReplicaOptions> = {}) => {
      const replica = startReplica(store, KINDS, {
        signal: stop.signal,
        limits: IMPATIENT,
        ...(watches === undefined ? {} : { watches }),
        ...options,
      });
      replicas.push(replica);
      return replica;
    };
    const updatesOf = (replica: Replica<Values>) =>
      replica.updates(AbortSignal.timeout(LIMIT_MILLISECONDS))[Symbol.asyncIterator]();

    test("first shows all records, however many pages that takes, and then the changes", async () => {
      const { store } = subject;
      for (let index = 0; index < 10; index++) await put(store, `${PREFIXES.pods}${index}`, "a");
      await put(store, `${PREFIXES.policies}0`, "b");
      await put(store, `${PREFIXES.other}0`, "c");
      const updates = updatesOf(start());
      const first = await nextOf(updates);
      await put(store, `${PREFIXES.pods}3`, "changed");
      const second = await nextOf(updates);
      const removed = await readKey(store, `${PREFIXES.policies}0`);
      await store.commit([{ kind: "delete", key: removed?.key ?? "", revision: removed?.revision ?? "" }]);
      const third = await nextOf(updates);

      expect([first.snapshot.pods.size, first.snapshot.policies.size]).toEqual([10, 1]);
      expect(first.changes.pods.map(({ kind }) => kind)).toEqual(new Array(10).fill("put"));
      expect(second.changes).toEqual({
        pods: [{ kind: "put", key: `${PREFIXES.pods}3`, value: "changed", previous: "a" }],
        policies: [],
      });
      expect(third.changes).toEqual({
        pods: [],
        policies: [{ kind: "delete", key: `${PREFIXES.policies}0`, previous: "b" }],
      });
      expect(first.snapshot.pods.get(`${PREFIXES.pods}3`)).toBe("a");
      const changed = await readKey(store, `${PREFIXES.pods}3`);
      expect(third.snapshot.pods.revisionOf(`${PREFIXES.pods}3`)).toBe(changed?.revision);
    });

    test("reports that it is in sync also with an empty store", async () => {
      const replica = start();
      const first = await nextOf(updatesOf(replica));

      expect([first.snapshot.pods.size, first.changes.pods]).toEqual([0, []]);
      expect(replica.status.state).toBe("in sync");
    });

    test("lists an unreadable record separately, reports it, and shows it again once it is readable", async () => {
      const { store } = subject;
      const key = `${PREFIXES.policies}bad`;
      await put(store, `${PREFIXES.policies}good`, "a");
      const reported: string[] = [];
      const updates = updatesOf(start(store, { report: ({ kind }) => reported.push(kind) }));
      await nextOf(updates);
      await put(store, key, "unreadable");
      const broken = await nextOf(updates);
      await put(store, key, "repaired");
      const repaired = await nextOf(updates);

      expect(broken.changes.policies).toMatchObject([
        { kind: "unreadable", key, failure: { kind: "record-malformed" } },
      ]);
      expect(stateOf(broken.snapshot.policies)).toEqual({ [`${PREFIXES.policies}good`]: "a", [key]: "unreadable" });
      expect([broken.snapshot.policies.get(key), broken.snapshot.policies.size]).toEqual([undefined, 1]);
      expect(repaired.snapshot.policies.unreadable).toEqual([]);
      expect(repaired.changes.policies).toEqual([{ kind: "put", key, value: "repaired", previous: undefined }]);
      expect(reported).toEqual(["record-malformed"]);
    });

    test("resumes from its bookmark without another list", async () => {
      const { store } = subject;
      await put(store, `${PREFIXES.pods}a`, "a");
      const network = interruptible(store);
      const replica = start(network.store);
      const updates = updatesOf(replica);
      await nextOf(updates);
      const reads = network.reads();
      await network.cut();
      await put(store, `${PREFIXES.pods}b`, "b");
      const missed = await nextOf(updates);

      expect(stateOf(missed.snapshot.pods)).toEqual({ [`${PREFIXES.pods}a`]: "a", [`${PREFIXES.pods}b`]: "b" });
      expect(missed.changes.pods).toHaveLength(1);
      expect(network.reads()).toBe(reads);
    });

    test("lists again if the history is gone, which is not a problem, and delivers only what was changed or deleted", async () => {
      const { store } = subject;
      for (const name of ["kept", "gone", "changed"]) await put(store, `${PREFIXES.pods}${name}`, "a");
      const network = interruptible(store);
      const reports: unknown[] = [];
      const replica = start(network.store, { report: (problem) => reports.push(problem) });
      const updates = updatesOf(replica);
      await nextOf(updates);
      const reads = network.reads();
      network.block();
      await network.cut();
      const gone = await readKey(store, `${PREFIXES.pods}gone`);
      await store.commit([{ kind: "delete", key: gone?.key ?? "", revision: gone?.revision ?? "" }]);
      await put(store, `${PREFIXES.pods}changed`, "b");
      const stale = replica.status.state;
      await subject.forgetHistory();
      network.unblock();
      const { changes } = await nextOf(updates);

      expect(changes.pods.map(({ kind, key }) => [kind, key]).toSorted()).toEqual([
        ["delete", `${PREFIXES.pods}gone`],
        ["put", `${PREFIXES.pods}changed`],
      ]);
      expect(stale).toBe("stale");
      // Kinds that are watched separately are in sync one after another, and one without changes yields no update.
      const late = AbortSignal.timeout(LIMIT_MILLISECONDS);
      while (replica.status.state !== "in sync" && !late.aborted) await Bun.sleep(5);
      expect(replica.status.state).toBe("in sync");
      expect(network.reads()).toBeGreaterThan(reads);
      expect(reports.some((problem) => problem instanceof HistoryGone)).toBe(false);
    });

    test("shows several consumers the same state, each at its own pace", async () => {
      const { store } = subject;
      const replica = start();
      const quick = updatesOf(replica);
      const slow = updatesOf(replica);
      await nextOf(slow);
      const seen = [await nextOf(quick)];
      for (const value of ["1", "2", "3"]) {
        await put(store, `${PREFIXES.pods}a`, value);
        await put(store, `${PREFIXES.pods}brief`, value);
        const brief = await readKey(store, `${PREFIXES.pods}brief`);
        await store.commit([{ kind: "delete", key: brief?.key ?? "", revision: brief?.revision ?? "" }]);
      }
      await put(store, `${PREFIXES.pods}last`, "x");
      while (seen.at(-1)?.snapshot.pods.get(`${PREFIXES.pods}last`) === undefined) seen.push(await nextOf(quick));
      const merged = await nextOf(slow);

      expect(merged.changes.pods).toEqual([
        { kind: "put", key: `${PREFIXES.pods}a`, value: "3", previous: undefined },
        { kind: "put", key: `${PREFIXES.pods}last`, value: "x", previous: undefined },
      ]);
      expect(stateOf(merged.snapshot.pods)).toEqual(stateOf((seen.at(-1) as Update<Values>).snapshot.pods));
    });

    if (histories === 0) return;
    const seeds = Array.from({ length: histories }, (_, index) => index + 1);
    describe.each(["together", "per kind"] as const)("watching its kinds %s", (watches) => {
      test.each(seeds)(
        "shows only states that the store was in, whatever the connection does (seed %d)",
        async (seed) => {
          await checkHistory(subject, { seed, watches, start });
        },
        60_000,
      );
    });
  });
}

async function nextOf(updates: AsyncIterator<Update<Values>>): Promise<Update<Values>> {
  const { value, done } = await updates.next();
  if (done) throw new Error("the replica has shown nothing within the limit");
  return value;
}
