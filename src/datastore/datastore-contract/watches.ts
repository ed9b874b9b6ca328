/** The contract of `watch()` and `close()`. */
import { expect, test } from "bun:test";
import { type Entry, HistoryGone } from "../datastore.ts";
import {
  collect,
  describeEvent,
  failureOf,
  LIMIT_MILLISECONDS,
  limited,
  put,
  type Revisions,
  readKey,
  type Subject,
} from "./subject.ts";

interface Promised {
  readonly revisions: Revisions;
  readonly order: "of all events" | "of each collection";
}

export function testWatching(subject: () => Subject, { revisions, order }: Promised): void {
  const store = () => subject().store;
  /** What is expected in order, or in any. */
  const ordered = (texts: readonly string[]) => (order === "of all events" ? [...texts] : texts.toSorted());

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

    expect(ordered((await seen).map(describeEvent))).toEqual(ordered(["put /w/a 1", "delete /w/a", "put /w/b 2"]));
    await other.close();
  });

  test("reports the revision of each event", async () => {
    const { revision } = await store().read([]);
    const written = await store().commit([{ kind: "put", key: "/w/a", value: "1" }]);
    const entry = (await readKey(store(), "/w/a")) as Entry;
    const gone = await store().commit([{ kind: "delete", key: "/w/a", revision: entry.revision }]);

    const [put, deleted] = await collect(store(), "/w/", revision, 2);
    expect(put).toEqual({ kind: "put", entry });
    expect(deleted).toMatchObject({ kind: "delete", key: "/w/a" });
    const deletedAt = deleted?.kind === "delete" ? deleted.revision : "0";
    expect(BigInt(deletedAt)).toBeGreaterThan(BigInt(entry.revision));
    if (revisions === "of the store") expect(gone).toEqual({ ok: true, revision: deletedAt });
    expect(written).toEqual({ ok: true, revision: entry.revision });
  });

  test("sends a bookmark to resume from, also after a commit of many changes", async () => {
    const { revision } = await store().read([]);
    await store().commit([1, 2, 3].map((number) => ({ kind: "put", key: `/w/${number}`, value: "" })));
    const kinds: string[] = [];
    let bookmark = revision;
    for await (const event of limited(store(), "/w/", revision)) {
      kinds.push(event.kind);
      if (event.kind === "bookmark") bookmark = event.revision;
      if (kinds.filter((kind) => kind === "put").length === 3 && event.kind === "bookmark") break;
    }
    await put(store(), "/w/later", "x");

    expect(kinds.filter((kind) => kind === "put")).toHaveLength(3);
    const later = [];
    for await (const event of limited(store(), "/w/", bookmark)) {
      if (event.kind !== "bookmark") later.push(describeEvent(event));
      if (later.includes("put /w/later x")) break;
    }
    // A collection that was ahead of the bookmark sends again what follows it.
    if (order === "of all events") expect(later).toEqual(["put /w/later x"]);
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
    if (order === "of all events") expect(revisions).toEqual(revisions.toSorted((left, right) => Number(left - right)));
    await Promise.all(others.map((other) => other.close()));
  });

  test("throws HistoryGone if the history since then was discarded", async () => {
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

  test("ends when the signal fires, whether it is waiting or has not started", async () => {
    const { revision } = await store().read([]);
    const stop = new AbortController();
    for await (const event of store().watch("/w/", revision, stop.signal)) {
      if (event.kind === "bookmark") setTimeout(() => stop.abort(), 1);
    }
    for await (const event of store().watch("/w/", revision, stop.signal)) expect(event).toBe("never" as never);

    expect(stop.signal.aborted).toBe(true);
  });
}

export function testClosing(subject: () => Subject): void {
  test("ends every watch, leaves the data, and may be called twice", async () => {
    const other = await subject().another();
    const { revision } = await other.read([]);
    const limit = AbortSignal.timeout(LIMIT_MILLISECONDS);
    for await (const event of other.watch("/", revision, limit)) {
      if (event.kind === "bookmark") setTimeout(() => other.close(), 1);
    }
    expect(limit.aborted).toBe(false);
    await other.close();
    await put(subject().store, "/k", "still");

    expect((await readKey(subject().store, "/k"))?.value).toBe("still");
  });
}

export function testLargeRevisions(openAt: (firstRevision: bigint) => Promise<Subject>): void {
  test("distinguishes adjacent revisions", async () => {
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
