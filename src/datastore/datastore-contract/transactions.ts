/** The contract of `transact()`: one attempt at read, decide, commit, decided from the state at the commit. */
import { expect, test } from "bun:test";
import type { Answered, Datastore, Decide, Wanted } from "../datastore.ts";
import { failureOf, put, type Revisions, readKey, type Subject } from "./subject.ts";

const COUNTER = { kind: "key", key: "/counter" } as const;

/** Increments the value of the key. */
const countUp: Decide<number> = (reads) => {
  const entry = reads[0]?.answers[0]?.[0];
  const next = Number(entry?.value ?? 0) + 1;
  const change = entry
    ? ({ kind: "update", key: COUNTER.key, value: String(next), revision: entry.revision } as const)
    : ({ kind: "create", key: COUNTER.key, value: String(next) } as const);
  return { kind: "commit", changes: [change], outcome: next };
};

const valueIn = (reads: readonly Answered[]) => reads[0]?.answers[0]?.[0]?.value;

export function testTransactions(subject: () => Subject, revisions: Revisions): void {
  const store = () => subject().store;
  const byAnother = async (act: (other: Datastore) => Promise<unknown>) => {
    const other = await subject().another();
    await act(other);
    await other.close();
  };

  test("decides from what was read, and commits the decision", async () => {
    for (const outcome of [1, 2, 3]) expect(await store().transact([COUNTER], countUp)).toMatchObject({ outcome });

    expect((await readKey(store(), COUNTER.key))?.value).toBe("3");
  });

  test("returns the revision of the commit", async () => {
    const { written } = await store().transact([COUNTER], countUp);

    expect(written).toEqual({ ok: true, revision: (await readKey(store(), COUNTER.key))?.revision ?? "" });
  });

  test("decides from what another wrote in the meantime", async () => {
    await store().transact([COUNTER], countUp);
    await byAnother((other) => put(other, COUNTER.key, "10"));

    expect(await store().transact([COUNTER], countUp)).toMatchObject({ written: { ok: true }, outcome: 11 });
  });

  test("reads what the decision requests, as often as it does", async () => {
    await put(store(), "/first", "/second");
    await put(store(), "/second", "/third");
    await put(store(), "/third", "found");
    const follow: Decide<readonly (string | undefined)[]> = (reads) => {
      const values = reads.map(({ answers }) => answers[0]?.[0]?.value);
      const last = values.at(-1);
      if (last?.startsWith("/")) return { kind: "read", wanted: [{ kind: "key", key: last }] };
      return { kind: "commit", changes: [{ kind: "put", key: "/k", value: "x" }], outcome: values };
    };

    const { outcome } = await store().transact([{ kind: "key", key: "/first" }], follow);
    expect(outcome).toEqual(["/second", "/third", "found"]);
    expect((await readKey(store(), "/k"))?.value).toBe("x");
  });

  test("reports a lost race, and the changes that were not committed", async () => {
    await put(store(), "/k", "theirs");
    const changes = [{ kind: "create", key: "/k", value: "mine" }] as const;
    const lost = await store().transact([COUNTER], () => ({ kind: "commit", changes, outcome: "mine" }));

    expect(lost).toMatchObject({ written: { ok: false, reason: "exists", key: "/k" }, changes, outcome: "mine" });
    expect((await readKey(store(), "/k"))?.value).toBe("theirs");
  });

  test("returns the current state if there is nothing to change, and writes nothing", async () => {
    const look: Decide<string | undefined> = (reads) => ({ kind: "commit", changes: [], outcome: valueIn(reads) });
    await put(store(), COUNTER.key, "1");
    await store().transact([COUNTER], look);
    await byAnother((other) => put(other, COUNTER.key, "2"));
    const { revision } = await store().read([]);

    const looked = await store().transact([COUNTER], look);
    expect(looked).toMatchObject({ written: { ok: true }, changes: [], outcome: "2" });
    if (revisions === "of the store") expect(looked.written).toEqual({ ok: true, revision });
    expect((await store().read([])).revision).toBe(revision);
  });

  test("fails with the error that the decision throws for the current state", async () => {
    const refuse: Decide<never> = (reads) => {
      throw new Error(`it is ${valueIn(reads)}`);
    };
    await put(store(), COUNTER.key, "1");
    await store().read([COUNTER]);
    await byAnother((other) => put(other, COUNTER.key, "2"));

    expect(await failureOf(store().transact([COUNTER], refuse))).toMatchObject({ message: "it is 2" });
  });

  test("writes nothing if a record that it only read has changed since it was last seen", async () => {
    const rules: Wanted = { kind: "prefix", prefix: "/rules/" };
    const unlessForbidden: Decide<string> = (reads) => {
      const isForbidden = reads[0]?.answers[0]?.some(({ value }) => value === "forbidden");
      if (isForbidden) return { kind: "commit", changes: [], outcome: "refused" };
      return { kind: "commit", changes: [{ kind: "put", key: "/k", value: "x" }], outcome: "written" };
    };
    await put(store(), "/rules/a", "allowed");
    expect((await store().transact([rules], unlessForbidden)).outcome).toBe("written");
    await byAnother((other) => put(other, "/rules/b", "forbidden"));

    expect((await store().transact([rules], unlessForbidden)).outcome).toBe("refused");
  });

  test("loses no increment among concurrent callers", async () => {
    const untilWon = async () => {
      for (;;) if ((await store().transact([COUNTER], countUp)).written.ok) return;
    };
    await Promise.all(Array.from({ length: 8 }, untilWon));

    expect((await readKey(store(), COUNTER.key))?.value).toBe("8");
  });
}
