/**
 * The promises of `Datastore` as tests: the whole obligation of a new datastore
 * is to run this suite.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Change, Datastore, DatastoreEvent, Entry, Written } from "./datastore.ts";
import { HistoryGone } from "./datastore.ts";
import { compareKeys } from "./key-order.ts";

/** An empty datastore to try, and what the suite must be able to do to it from outside. */
export interface Subject {
  readonly store: Datastore;
  /** A second connection to the same data. */
  readonly another: () => Promise<Datastore>;
  /** Makes the store forget its history up to now. */
  readonly forgetHistory: () => Promise<void>;
  readonly dispose: () => Promise<void>;
}

interface Means {
  /** A subject whose count of commits begins at this revision, where the store can be made so. */
  readonly openAt?: (firstRevision: bigint) => Promise<Subject>;
}

const LIMIT_MILLISECONDS = 20_000;

export function datastoreContract(name: string, open: () => Promise<Subject>, means: Means = {}): void {
  describe(`${name} keeps the promise of a datastore`, () => {
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

    describe("commit()", () => testPreconditions(() => store));
    describe("commit() of several changes", () => testAtomicity(() => store));
    describe("read()", () => testReading(() => store));
    describe("keys and values", () => testOddities(() => store));
    describe("watch()", () => testWatching(() => subject));
    describe("close()", () => testClosing(() => subject));
  });

  const { openAt } = means;
  if (openAt) describe(`${name} counts beyond 2^53`, () => testLargeRevisions(openAt));
}

function testPreconditions(store: () => Datastore): void {
  const revisionOf = async (key: string) => (await readKey(store(), key))?.revision ?? "none";

  test("creates a key that is absent, and refuses one that exists", async () => {
    const created = await store().commit([{ kind: "create", key: "/k", value: "one" }]);
    const again = await store().commit([{ kind: "create", key: "/k", value: "two" }]);

    expect(created.ok).toBe(true);
    expect(again).toEqual({ ok: false, reason: "exists", key: "/k" });
    expect((await readKey(store(), "/k"))?.value).toBe("one");
  });

  test("answers the revision that the written entry then has", async () => {
    const written = await store().commit([{ kind: "create", key: "/k", value: "one" }]);

    expect(written).toEqual({ ok: true, revision: await revisionOf("/k") });
  });

  for (const kind of ["update", "delete"] as const) {
    const change = (revision: string): Change =>
      kind === "update" ? { kind, key: "/k", value: "new", revision } : { kind, key: "/k", revision };

    test(`${kind}s what is unchanged since it was read`, async () => {
      await put(store(), "/k", "old");

      expect((await store().commit([change(await revisionOf("/k"))])).ok).toBe(true);
      expect((await readKey(store(), "/k"))?.value).toBe(kind === "update" ? "new" : undefined);
    });

    test(`refuses to ${kind} what has changed since`, async () => {
      await put(store(), "/k", "old");
      const seen = await revisionOf("/k");
      await put(store(), "/k", "newer");

      expect(await store().commit([change(seen)])).toEqual({ ok: false, reason: "stale", key: "/k" });
      expect((await readKey(store(), "/k"))?.value).toBe("newer");
    });

    test(`refuses to ${kind} what is missing`, async () => {
      expect(await store().commit([change("1")])).toEqual({ ok: false, reason: "missing", key: "/k" });
    });

    test(`refuses to ${kind} what was deleted and created again`, async () => {
      await put(store(), "/k", "old");
      const seen = await revisionOf("/k");
      await store().commit([{ kind: "delete", key: "/k", revision: seen }]);
      await put(store(), "/k", "old");

      expect(await store().commit([change(seen)])).toEqual({ ok: false, reason: "stale", key: "/k" });
    });
  }

  test("puts whatever was there before", async () => {
    await put(store(), "/k", "one");
    await put(store(), "/k", "two");

    expect((await readKey(store(), "/k"))?.value).toBe("two");
  });

  test("guards with expectations that write nothing", async () => {
    await put(store(), "/there", "x");
    const seen = await revisionOf("/there");
    const tryWith = (key: string, revision: string | undefined) =>
      store().commit([
        { kind: "expect", key, revision },
        { kind: "put", key: "/k", value: "written" },
      ]);

    expect(await tryWith("/there", "1")).toEqual({ ok: false, reason: "stale", key: "/there" });
    expect(await tryWith("/absent", seen)).toEqual({ ok: false, reason: "missing", key: "/absent" });
    expect(await tryWith("/there", undefined)).toEqual({ ok: false, reason: "exists", key: "/there" });
    expect(await readKey(store(), "/k")).toBeUndefined();

    expect((await tryWith("/there", seen)).ok).toBe(true);
    expect((await tryWith("/absent", undefined)).ok).toBe(true);
    expect(await revisionOf("/there")).toBe(seen);
  });

  test("answers the present revision when there is nothing to write", async () => {
    await put(store(), "/k", "x");
    const now = (await store().read([])).revision;

    expect(await store().commit([])).toEqual({ ok: true, revision: now });
    expect(await store().commit([{ kind: "expect", key: "/absent", revision: undefined }])).toEqual({
      ok: true,
      revision: now,
    });
    expect((await store().read([])).revision).toBe(now);
  });
}

function testAtomicity(store: () => Datastore): void {
  test("writes all of them at one revision", async () => {
    await put(store(), "/gone", "x");
    const { revision } = (await readKey(store(), "/gone")) ?? { revision: "" };
    const written = await store().commit([
      { kind: "create", key: "/a", value: "1" },
      { kind: "put", key: "/b", value: "2" },
      { kind: "delete", key: "/gone", revision },
    ]);

    const snapshot = await store().read([{ kind: "prefix", prefix: "/" }]);
    expect(written).toEqual({ ok: true, revision: snapshot.revision });
    expect(snapshot.answers[0]?.map(({ key }) => key)).toEqual(["/a", "/b"]);
    expect(new Set(snapshot.answers[0]?.map((entry) => entry.revision))).toEqual(new Set([snapshot.revision]));
  });

  test("writes none of them when one is refused, and names the first refused in the order given", async () => {
    await put(store(), "/z", "there");
    await put(store(), "/b", "there");
    const written = await store().commit([
      { kind: "create", key: "/a", value: "1" },
      { kind: "create", key: "/z", value: "1" },
      { kind: "create", key: "/b", value: "1" },
    ]);

    expect(written).toEqual({ ok: false, reason: "exists", key: "/z" });
    expect(await readKey(store(), "/a")).toBeUndefined();
  });

  test("refuses a key named twice as a fault of the caller", async () => {
    const twice = store().commit([
      { kind: "put", key: "/a", value: "1" },
      { kind: "put", key: "/a", value: "2" },
    ]);

    expect(await failureOf(twice)).toMatchObject({ kind: "internal" });
  });

  test("takes 128 changes at once, and refuses more as a fault of the caller", async () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, index): Change => ({ kind: "create", key: `/many/${index}`, value: "" }));

    expect(await failureOf(store().commit(many(129)))).toMatchObject({ kind: "internal" });
    expect((await store().commit(many(128))).ok).toBe(true);
  });

  test("loses no increment among concurrent writers", async () => {
    await put(store(), "/counter", "0");
    const increment = async (): Promise<Written> => {
      const entry = await readKey(store(), "/counter");
      const { revision, value } = entry ?? { revision: "", value: "" };
      return store().commit([{ kind: "update", key: "/counter", value: String(Number(value) + 1), revision }]);
    };
    const incrementUntilWon = async () => {
      for (;;) if ((await increment()).ok) return;
    };
    await Promise.all(Array.from({ length: 8 }, incrementUntilWon));

    expect((await readKey(store(), "/counter"))?.value).toBe("8");
  });
}

function testReading(store: () => Datastore): void {
  test("answers keys and prefixes of one moment, in the order asked", async () => {
    await store().commit([
      { kind: "put", key: "/a/1", value: "one" },
      { kind: "put", key: "/a/2", value: "two" },
      { kind: "put", key: "/ab", value: "beside" },
      { kind: "put", key: "/c", value: "three" },
    ]);
    const { answers, revision } = await store().read([
      { kind: "key", key: "/c" },
      { kind: "prefix", prefix: "/a/" },
      { kind: "key", key: "/absent" },
      { kind: "prefix", prefix: "/absent/" },
    ]);

    expect(answers).toEqual([
      [{ key: "/c", value: "three", revision }],
      [
        { key: "/a/1", value: "one", revision },
        { key: "/a/2", value: "two", revision },
      ],
      [],
      [],
    ]);
  });

  test("answers more than 128 keys of one moment", async () => {
    const keys = Array.from({ length: 300 }, (_, index) => `/many/${index}`);
    for (const start of [0, 100, 200]) {
      await store().commit(keys.slice(start, start + 100).map((key) => ({ kind: "put", key, value: key })));
    }
    const { answers } = await store().read(keys.map((key) => ({ kind: "key", key })));

    expect(answers.map((answer) => answer[0]?.value)).toEqual(keys);
  });

  test("never shows half a commit", async () => {
    const writing = (async () => {
      for (let round = 0; round < 50; round++) {
        await store().commit([
          { kind: "put", key: "/left", value: String(round) },
          { kind: "put", key: "/right/x", value: String(round) },
        ]);
      }
    })();
    for (let round = 0; round < 50; round++) {
      const { answers } = await store().read([
        { kind: "key", key: "/left" },
        { kind: "prefix", prefix: "/right/" },
      ]);
      expect(answers[0]?.[0]?.value).toBe(answers[1]?.[0]?.value);
    }
    await writing;
  });

  test("gives every key of a prefix exactly once, page by page", async () => {
    const keys = Array.from({ length: 25 }, (_, index) => `/p/${String(index).padStart(2, "0")}`);
    await store().commit(keys.map((key) => ({ kind: "put", key, value: key })));
    const seen: string[] = [];
    for (let after: string | undefined; ; ) {
      const wanted = { kind: "prefix", prefix: "/p/", limit: 10, ...(after ? { after } : {}) } as const;
      const page = (await store().read([wanted])).answers[0] ?? [];
      seen.push(...page.map(({ key }) => key));
      if (page.length < 10) break;
      after = page.at(-1)?.key;
    }

    expect(seen).toEqual(keys);
  });

  test("begins behind `after` even where that key is not there, and never before the prefix", async () => {
    for (const key of ["/o", "/p/a", "/p/c", "/q"]) await put(store(), key, "");
    const keysAfter = async (after: string) =>
      (await store().read([{ kind: "prefix", prefix: "/p/", after }])).answers[0]?.map(({ key }) => key);

    expect(await keysAfter("/p/b")).toEqual(["/p/c"]);
    expect(await keysAfter("/a")).toEqual(["/p/a", "/p/c"]);
    expect(await keysAfter("/z")).toEqual([]);
  });

  test("reads everything below the empty prefix", async () => {
    await put(store(), "\u{0001}", "first");
    await put(store(), "\u{10ffff}", "last");

    const everything = (await store().read([{ kind: "prefix", prefix: "" }])).answers[0];
    expect(everything?.map(({ value }) => value)).toEqual(["first", "last"]);
  });
}

function testOddities(store: () => Datastore): void {
  const ODD_KEYS = [
    "/with space",
    "/100%/%2F/%zz",
    "/äöü/日本語/🦊",
    "/\u{ffee}/before the fox",
    "/quote'\"\\back`tick",
    "/line\nbreak\ttab",
    "/wild*card_?%",
    `/long/${"x".repeat(4000)}`,
    "//",
    "no slash",
  ];

  test("keeps odd keys apart, whole, and in the order of their bytes", async () => {
    await store().commit(ODD_KEYS.map((key) => ({ kind: "create", key, value: `value of ${key}` })));

    const everything = (await store().read([{ kind: "prefix", prefix: "" }])).answers[0] ?? [];
    expect(everything.map(({ key }) => key)).toEqual(ODD_KEYS.toSorted(compareKeys));
    for (const { key, value } of everything) expect(value).toBe(`value of ${key}`);
    for (const key of ODD_KEYS) expect((await readKey(store(), key))?.key).toBe(key);
  });

  test("takes a prefix literally", async () => {
    for (const key of ["/a%b/1", "/aXb/1", "/a_b/1", "/🦊/1"]) await put(store(), key, "");
    const keysBelow = async (prefix: string) =>
      (await store().read([{ kind: "prefix", prefix }])).answers[0]?.map(({ key }) => key);

    expect(await keysBelow("/a%b/")).toEqual(["/a%b/1"]);
    expect(await keysBelow("/a_b/")).toEqual(["/a_b/1"]);
    expect(await keysBelow("/🦊")).toEqual(["/🦊/1"]);
  });

  test.each([
    ["empty", ""],
    ["of 1 MB", "ü".repeat(512 * 1024)],
    ["with a zero character", "a\u{0000}b"],
    ["that looks like JSON", '{"sequence":9223372036854775807,"text":"\\u0000"}'],
  ])("keeps a value %s as it is", async (_, value) => {
    await put(store(), "/k", value);

    expect((await readKey(store(), "/k"))?.value === value).toBe(true);
  });

  test("refuses an empty key and broken text", async () => {
    expect(await failureOf(put(store(), "", "x"))).toMatchObject({ kind: "internal" });
    expect(await failureOf(put(store(), "/\u{d800}", "x"))).toMatchObject({ kind: "internal" });
    expect(await failureOf(put(store(), "/k", "\u{dfff}"))).toMatchObject({ kind: "internal" });
  });
}

function testWatching(subject: () => Subject): void {
  const store = () => subject().store;

  test("delivers what happened after the revision, and what happens from now on", async () => {
    await put(store(), "/w/before", "x");
    const { revision } = await store().read([]);
    await put(store(), "/w/a", "1");
    await put(store(), "/elsewhere", "1");
    const seen = collect(store(), "/w/", revision, 3);
    const other = await subject().another();
    const created = await readKey(store(), "/w/a");
    await other.commit([{ kind: "delete", key: "/w/a", revision: created?.revision ?? "" }]);
    await put(other, "/w/b", "2");

    expect((await seen).map(describeEvent)).toEqual(["put /w/a 1", "delete /w/a", "put /w/b 2"]);
    await other.close();
  });

  test("says at which revision each event happened", async () => {
    const { revision } = await store().read([]);
    const written = await store().commit([{ kind: "put", key: "/w/a", value: "1" }]);
    const entry = (await readKey(store(), "/w/a")) as Entry;
    const gone = await store().commit([{ kind: "delete", key: "/w/a", revision: entry.revision }]);

    expect(await collect(store(), "/w/", revision, 2)).toEqual([
      { kind: "put", entry },
      { kind: "delete", key: "/w/a", revision: gone.ok ? gone.revision : "" },
    ]);
    expect(written).toEqual({ ok: true, revision: entry.revision });
  });

  test("marks with a bookmark where to resume, also behind a commit of many changes", async () => {
    const { revision } = await store().read([]);
    await store().commit([1, 2, 3].map((number) => ({ kind: "put", key: `/w/${number}`, value: "" })));
    const kinds: string[] = [];
    let bookmark = revision;
    for await (const event of limited(store(), "/w/", revision)) {
      kinds.push(event.kind);
      if (event.kind === "bookmark") bookmark = event.revision;
      if (kinds.includes("put") && event.kind === "bookmark") break;
    }
    await put(store(), "/w/later", "x");

    expect(kinds.filter((kind) => kind === "put")).toHaveLength(3);
    expect((await collect(store(), "/w/", bookmark, 1)).map(describeEvent)).toEqual(["put /w/later x"]);
  });

  test("misses nothing and repeats nothing among concurrent writers, in the order of revisions", async () => {
    const { revision } = await store().read([]);
    const others = await Promise.all([subject().another(), subject().another(), subject().another()]);
    const seen = collect(store(), "/w/", revision, 60);
    await Promise.all(
      others.map(async (other, writer) => {
        for (let count = 0; count < 20; count++) await put(other, `/w/${writer}/${count}`, "x");
      }),
    );
    const events = await seen;
    const revisions = events.map((event) => BigInt(event.kind === "put" ? event.entry.revision : "0"));

    expect(new Set(events.map(describeEvent)).size).toBe(60);
    expect(revisions).toEqual(revisions.toSorted((left, right) => Number(left - right)));
    await Promise.all(others.map((other) => other.close()));
  });

  test("throws HistoryGone where the history since is forgotten", async () => {
    const { revision } = await store().read([]);
    await put(store(), "/w/a", "1");
    await put(store(), "/w/b", "2");
    await subject().forgetHistory();

    expect(await failureOf(collect(store(), "/w/", revision, 1))).toBeInstanceOf(HistoryGone);
    const now = (await store().read([])).revision;
    const seen = collect(store(), "/w/", now, 1);
    await put(store(), "/w/c", "3");
    expect((await seen).map(describeEvent)).toEqual(["put /w/c 3"]);
  });

  test("throws HistoryGone for a revision the store has not reached, as after a restore from an old copy", async () => {
    const { revision } = await store().read([]);

    const ahead = collect(store(), "/w/", String(BigInt(revision) + 1000n), 1);
    expect(await failureOf(ahead)).toBeInstanceOf(HistoryGone);
  });

  test("ends when the signal fires, whether waiting or not yet begun", async () => {
    const { revision } = await store().read([]);
    const stop = new AbortController();
    for await (const event of store().watch("/w/", revision, stop.signal)) {
      if (event.kind === "bookmark") setTimeout(() => stop.abort(), 1);
    }
    for await (const event of store().watch("/w/", revision, stop.signal)) expect(event).toBe("never" as never);

    expect(stop.signal.aborted).toBe(true);
  });
}

function testClosing(subject: () => Subject): void {
  test("ends every watch, leaves the data, and may be called twice", async () => {
    const other = await subject().another();
    const { revision } = await other.read([]);
    for await (const event of other.watch("/", revision, AbortSignal.timeout(LIMIT_MILLISECONDS))) {
      if (event.kind === "bookmark") setTimeout(() => other.close(), 1);
    }
    await other.close();
    await put(subject().store, "/k", "still");

    expect((await readKey(subject().store, "/k"))?.value).toBe("still");
  });
}

function testLargeRevisions(openAt: (firstRevision: bigint) => Promise<Subject>): void {
  test("keeps neighbouring revisions apart", async () => {
    const { store, dispose } = await openAt(2n ** 53n);
    await put(store, "/k", "one");
    const first = (await readKey(store, "/k"))?.revision ?? "";
    await put(store, "/k", "two");
    const stale = await store.commit([{ kind: "update", key: "/k", value: "three", revision: first }]);

    expect(first).toBe("9007199254740993");
    expect(stale).toEqual({ ok: false, reason: "stale", key: "/k" });
    expect((await collect(store, "/", first, 1)).map(describeEvent)).toEqual(["put /k two"]);
    await store.close();
    await dispose();
  });
}

async function put(store: Datastore, key: string, value: string): Promise<void> {
  expect((await store.commit([{ kind: "put", key, value }])).ok).toBe(true);
}

async function readKey(store: Datastore, key: string): Promise<Entry | undefined> {
  return (await store.read([{ kind: "key", key }])).answers[0]?.[0];
}

/** What a promise fails with. (`expect().rejects` waits in a way that starves HTTP/2.) */
function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

function limited(store: Datastore, prefix: string, from: string): AsyncIterable<DatastoreEvent> {
  return store.watch(prefix, from, AbortSignal.timeout(LIMIT_MILLISECONDS));
}

/** The next events of a watch, bookmarks left out. */
async function collect(store: Datastore, prefix: string, from: string, count: number): Promise<DatastoreEvent[]> {
  const events: DatastoreEvent[] = [];
  for await (const event of limited(store, prefix, from)) {
    if (event.kind !== "bookmark") events.push(event);
    if (events.length === count) break;
  }
  return events;
}

function describeEvent(event: DatastoreEvent): string {
  if (event.kind === "put") return `put ${event.entry.key} ${event.entry.value}`;
  return event.kind === "delete" ? `delete ${event.key}` : `bookmark ${event.revision}`;
}
