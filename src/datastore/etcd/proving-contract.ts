/** The contract of `commitIfUnchanged()`: a guess that is wrong in anything writes nothing, and brings the read along. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { failureOf, put, readKey } from "../contract/subject.ts";
import type { Change, Datastore, Wanted } from "../datastore.ts";
import type { Guess, Proven, ProvingDatastore } from "./proving.ts";

const WANTED: readonly Wanted[] = [
  { kind: "key", key: "/there" },
  { kind: "key", key: "/absent" },
  { kind: "prefix", prefix: "/some/" },
  { kind: "prefix", prefix: "/none/" },
];
const WRITE: Change = { kind: "put", key: "/written", value: "x" };

/** Others do this between the guess and the commit; each alone makes the guess wrong. */
const FOREIGN: readonly (readonly [title: string, act: (store: Datastore) => Promise<void>])[] = [
  ["a key was changed", (store) => put(store, "/there", "new")],
  ["a key was written anew, to the same value", (store) => put(store, "/there", "old")],
  ["a key was deleted", (store) => remove(store, "/there")],
  ["a key was deleted and created again", (store) => replace(store, "/there")],
  ["an absent key was created", (store) => put(store, "/absent", "x")],
  ["one of a listing was changed", (store) => put(store, "/some/b", "new")],
  ["one of a listing was deleted", (store) => remove(store, "/some/b")],
  ["the newest of a listing was deleted", (store) => remove(store, "/some/d")],
  ["one of a listing was deleted and created again", (store) => replace(store, "/some/b")],
  ["one was added before a listing", (store) => put(store, "/some/a", "x")],
  ["one was added within a listing", (store) => put(store, "/some/c", "x")],
  ["one was added behind a listing", (store) => put(store, "/some/e", "x")],
  ["one was put in the place of another", (store) => rename(store, "/some/b", "/some/c")],
  ["one was added to an empty listing", (store) => put(store, "/none/a", "x")],
];

/** `open`: an empty store. */
export function provingContract(name: string, open: () => Promise<ProvingDatastore>): void {
  describe(`commitIfUnchanged() of ${name}`, () => {
    let store: ProvingDatastore;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());
    testProving(() => store);
  });
}

function testProving(store: () => ProvingDatastore): void {
  const seed = async () => {
    for (const key of ["/some/b", "/there", "/some/d"]) await put(store(), key, "old");
  };

  test("commits where all is as guessed, absent keys and empty listings too", async () => {
    await seed();
    const proven = await prove(store(), await guessOf(store(), WANTED), [WRITE]);

    expect(await readKey(store(), "/written")).toEqual({ key: "/written", value: "x", revision: revisionOf(proven) });
  });

  for (const [title, act] of FOREIGN) {
    test(`writes nothing and answers the read when ${title}`, async () => {
      await seed();
      const guess = await guessOf(store(), WANTED);
      await act(store());
      const proven = await prove(store(), guess, [WRITE]);

      expect(proven).toEqual({ ok: false, snapshot: await store().read(WANTED) });
      expect(await readKey(store(), "/written")).toBeUndefined();
    });
  }

  test("is not disturbed by what happens beside what was guessed", async () => {
    await seed();
    const guess = await guessOf(store(), WANTED);
    for (const key of ["/some", "/some0", "/there/", "/absent0", "/none"]) await put(store(), key, "x");

    expect((await prove(store(), guess, [WRITE])).ok).toBe(true);
  });

  test("takes a listing with its own change for what comes next", async () => {
    await seed();
    const [listing] = [{ kind: "prefix", prefix: "/some/" } as const];
    const first = await prove(store(), await guessOf(store(), [listing]), [
      { kind: "create", key: "/some/c", value: "own" },
    ]);
    const known = (await store().read([listing])).answers;
    expect(known[0]?.[1]?.revision).toBe(revisionOf(first));

    expect((await prove(store(), { wanted: [listing], answers: known }, [WRITE])).ok).toBe(true);
  });

  test("refuses a change that may not happen though the guess was right", async () => {
    await seed();
    const guess = await guessOf(store(), [{ kind: "key", key: "/absent" }]);
    const proven = await prove(store(), guess, [WRITE, { kind: "create", key: "/there", value: "x" }]);

    expect(proven).toEqual({ ok: false, snapshot: await store().read(guess.wanted) });
    expect(await readKey(store(), "/written")).toBeUndefined();
  });

  test("answers the read alone where more was guessed than one request can hold", async () => {
    const keys = Array.from({ length: 130 }, (_, index) => `/many/${index}`);
    for (const key of keys) await put(store(), key, "x");
    for (const wanted of [
      keys.map((key) => ({ kind: "key", key }) as const),
      [{ kind: "prefix", prefix: "/many/" }],
    ] as const) {
      const guess = await guessOf(store(), wanted);
      await put(store(), "/many/0", "new");

      expect(await prove(store(), guess, [WRITE])).toEqual({ ok: false, snapshot: await store().read(wanted) });
    }
  });

  test("does not take a page for the whole", async () => {
    await seed();
    const page = [{ kind: "prefix", prefix: "/some/", limit: 1 }] as const;
    const guess = await guessOf(store(), page);
    await put(store(), "/some/a", "new");

    expect(await prove(store(), guess, [WRITE])).toEqual({ ok: false, snapshot: await store().read(page) });
  });

  test("refuses a key named twice as a fault of the caller", async () => {
    expect(await failureOf(prove(store(), { wanted: [], answers: [] }, [WRITE, WRITE]))).toMatchObject({
      kind: "internal",
    });
  });

  test("loses no increment among concurrent writers that only guess", async () => {
    const wanted = [{ kind: "prefix", prefix: "/count/" }] as const;
    const add = async (writer: number) => {
      let answers: Guess["answers"] = [[]];
      for (;;) {
        const value = String(answers[0]?.length ?? 0);
        const proven = await prove(store(), { wanted, answers }, [{ kind: "put", key: `/count/${writer}`, value }]);
        if (proven.ok) return;
        answers = proven.snapshot.answers;
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, writer) => add(writer)));

    const { answers } = await store().read(wanted);
    expect(answers[0]?.map(({ value }) => value).sort()).toEqual(["0", "1", "2", "3", "4", "5", "6", "7"]);
  });
}

async function guessOf(store: Datastore, wanted: readonly Wanted[]): Promise<Guess> {
  return { wanted, answers: (await store.read(wanted)).answers };
}

function prove(store: ProvingDatastore, guess: Guess, changes: readonly Change[]): Promise<Proven> {
  return store.commitIfUnchanged(guess, changes);
}

function revisionOf(proven: Proven): string {
  return proven.ok ? proven.revision : "refused";
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
