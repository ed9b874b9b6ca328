/** The contract of `commit()`: preconditions of each kind of change. */
import { expect, test } from "bun:test";
import type { Change, Datastore } from "../datastore.ts";
import { put, type Revisions, readKey } from "./subject.ts";

export function testPreconditions(store: () => Datastore, revisions: Revisions): void {
  const revisionOf = async (key: string) => (await readKey(store(), key))?.revision ?? "none";

  test("creates an absent key, and refuses an existing one", async () => {
    const created = await store().commit([{ kind: "create", key: "/k", value: "one" }]);
    const again = await store().commit([{ kind: "create", key: "/k", value: "two" }]);

    expect(created.ok).toBe(true);
    expect(again).toEqual({ ok: false, reason: "exists", key: "/k" });
    expect((await readKey(store(), "/k"))?.value).toBe("one");
  });

  test("returns the revision of the written entry", async () => {
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

  test("puts unconditionally", async () => {
    await put(store(), "/k", "one");
    await put(store(), "/k", "two");

    expect((await readKey(store(), "/k"))?.value).toBe("two");
  });

  test("checks expectations, which write nothing", async () => {
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

  test("returns the current revision if there is nothing to write", async () => {
    await put(store(), "/k", "x");
    const now = (await store().read([])).revision;

    const nothing = await store().commit([]);
    const met = await store().commit([{ kind: "expect", key: "/absent", revision: undefined }]);
    expect([nothing.ok, met.ok]).toEqual([true, true]);
    // The orchestrator's API server writes objects of its own at any time.
    if (revisions === "of each object") return;
    expect([nothing, met]).toEqual([nothing, met].map(() => ({ ok: true, revision: now })));
    expect((await store().read([])).revision).toBe(now);
  });
}
