/** The contract of `commitIfUnchanged()`: if any assumption is wrong, it writes nothing and returns the read. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Change, Datastore, Wanted } from "../datastore.ts";
import { failureOf, put, readKey } from "../datastore-contract/subject.ts";
import type { AssumedRead, VerifiedCommit, VerifyingDatastore } from "./verified-commit.ts";

const WANTED: readonly Wanted[] = [
  { kind: "key", key: "/there" },
  { kind: "key", key: "/absent" },
  { kind: "prefix", prefix: "/some/" },
  { kind: "prefix", prefix: "/none/" },
];
const WRITE: Change = { kind: "put", key: "/written", value: "x" };

/** Changes by others between the assumed read and the commit; each of them makes the assumption wrong. */
const FOREIGN: readonly (readonly [title: string, act: (store: Datastore) => Promise<void>])[] = [
  ["a key was changed", (store) => put(store, "/there", "new")],
  ["a key was written again with the same value", (store) => put(store, "/there", "old")],
  ["a key was deleted", (store) => remove(store, "/there")],
  ["a key was deleted and created again", (store) => replace(store, "/there")],
  ["an absent key was created", (store) => put(store, "/absent", "x")],
  ["an entry of a listing was changed", (store) => put(store, "/some/b", "new")],
  ["an entry of a listing was deleted", (store) => remove(store, "/some/b")],
  ["the newest entry of a listing was deleted", (store) => remove(store, "/some/d")],
  ["an entry of a listing was deleted and created again", (store) => replace(store, "/some/b")],
  ["an entry was added at the start of a listing", (store) => put(store, "/some/a", "x")],
  ["an entry was added within a listing", (store) => put(store, "/some/c", "x")],
  ["an entry was added at the end of a listing", (store) => put(store, "/some/e", "x")],
  ["an entry was replaced by another", (store) => rename(store, "/some/b", "/some/c")],
  ["an entry was added to an empty listing", (store) => put(store, "/none/a", "x")],
];

/** `open`: an empty store. */
export function verifiedCommitContract(name: string, open: () => Promise<VerifyingDatastore>): void {
  describe(`commitIfUnchanged() of ${name}`, () => {
    let store: VerifyingDatastore;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());
    testVerifiedCommits(() => store);
  });
}

function testVerifiedCommits(store: () => VerifyingDatastore): void {
  const seed = async () => {
    for (const key of ["/some/b", "/there", "/some/d"]) await put(store(), key, "old");
  };

  test("commits if everything is as assumed, absent keys and empty listings included", async () => {
    await seed();
    const verified = await commitVerified(store(), await assumeRead(store(), WANTED), [WRITE]);

    expect(await readKey(store(), "/written")).toEqual({ key: "/written", value: "x", revision: revisionOf(verified) });
  });

  for (const [title, act] of FOREIGN) {
    test(`writes nothing and returns the read when ${title}`, async () => {
      await seed();
      const assumed = await assumeRead(store(), WANTED);
      await act(store());
      const verified = await commitVerified(store(), assumed, [WRITE]);

      expect(verified).toEqual({ ok: false, snapshot: await store().read(WANTED) });
      expect(await readKey(store(), "/written")).toBeUndefined();
    });
  }

  test("ignores changes of other keys", async () => {
    await seed();
    const assumed = await assumeRead(store(), WANTED);
    for (const key of ["/some", "/some0", "/there/", "/absent0", "/none"]) await put(store(), key, "x");

    expect((await commitVerified(store(), assumed, [WRITE])).ok).toBe(true);
  });

  test("accepts a listing that includes its own previous change", async () => {
    await seed();
    const [listing] = [{ kind: "prefix", prefix: "/some/" } as const];
    const first = await commitVerified(store(), await assumeRead(store(), [listing]), [
      { kind: "create", key: "/some/c", value: "own" },
    ]);
    const known = (await store().read([listing])).answers;
    expect(known[0]?.[1]?.revision).toBe(revisionOf(first));

    expect((await commitVerified(store(), { wanted: [listing], answers: known }, [WRITE])).ok).toBe(true);
  });

  test("refuses a change whose own precondition fails, although the assumption was right", async () => {
    await seed();
    const assumed = await assumeRead(store(), [{ kind: "key", key: "/absent" }]);
    const verified = await commitVerified(store(), assumed, [WRITE, { kind: "create", key: "/there", value: "x" }]);

    expect(verified).toEqual({ ok: false, snapshot: await store().read(assumed.wanted) });
    expect(await readKey(store(), "/written")).toBeUndefined();
  });

  test("only returns the read if more was assumed than one request can compare", async () => {
    const keys = Array.from({ length: 130 }, (_, index) => `/many/${index}`);
    for (const key of keys) await put(store(), key, "x");
    for (const wanted of [
      keys.map((key) => ({ kind: "key", key }) as const),
      [{ kind: "prefix", prefix: "/many/" }],
    ] as const) {
      const assumed = await assumeRead(store(), wanted);
      await put(store(), "/many/0", "new");

      expect(await commitVerified(store(), assumed, [WRITE])).toEqual({
        ok: false,
        snapshot: await store().read(wanted),
      });
    }
  });

  test("does not treat a page as a complete listing", async () => {
    await seed();
    const page = [{ kind: "prefix", prefix: "/some/", limit: 1 }] as const;
    const assumed = await assumeRead(store(), page);
    await put(store(), "/some/a", "new");

    expect(await commitVerified(store(), assumed, [WRITE])).toEqual({ ok: false, snapshot: await store().read(page) });
  });

  test("reports a key named twice as a programming error", async () => {
    expect(await failureOf(commitVerified(store(), { wanted: [], answers: [] }, [WRITE, WRITE]))).toMatchObject({
      kind: "internal",
    });
  });

  test("loses no increment among concurrent writers that never read first", async () => {
    const wanted = [{ kind: "prefix", prefix: "/count/" }] as const;
    const add = async (writer: number) => {
      let answers: AssumedRead["answers"] = [[]];
      for (;;) {
        const value = String(answers[0]?.length ?? 0);
        const verified = await commitVerified(store(), { wanted, answers }, [
          { kind: "put", key: `/count/${writer}`, value },
        ]);
        if (verified.ok) return;
        answers = verified.snapshot.answers;
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, writer) => add(writer)));

    const { answers } = await store().read(wanted);
    expect(answers[0]?.map(({ value }) => value).sort()).toEqual(["0", "1", "2", "3", "4", "5", "6", "7"]);
  });
}

async function assumeRead(store: Datastore, wanted: readonly Wanted[]): Promise<AssumedRead> {
  return { wanted, answers: (await store.read(wanted)).answers };
}

function commitVerified(
  store: VerifyingDatastore,
  assumed: AssumedRead,
  changes: readonly Change[],
): Promise<VerifiedCommit> {
  return store.commitIfUnchanged(assumed, changes);
}

function revisionOf(verified: VerifiedCommit): string {
  return verified.ok ? verified.revision : "refused";
}

async function remove(store: Datastore, key: string): Promise<void> {
  const revision = (await readKey(store, key))?.revision ?? "";
  expect((await store.commit([{ kind: "delete", key, revision }])).ok).toBe(true);
}

async function replace(store: Datastore, key: string): Promise<void> {
  await remove(store, key);
  await put(store, key, "old");
}

async function rename(store: Datastore, from: string, to: string): Promise<void> {
  await remove(store, from);
  await put(store, to, "old");
}
