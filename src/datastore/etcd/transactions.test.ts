import { describe, expect, test } from "bun:test";
import type { Change, Entry, Wanted } from "../datastore.ts";
import { encodeTransaction } from "./gateway-json.ts";
import { verifiedTransaction } from "./transactions.ts";
import type { AssumedRead } from "./verified-commit.ts";

const entry = (key: string, revision: string): Entry => ({ key, value: "x", revision });
const keys = (count: number): readonly Wanted[] =>
  Array.from({ length: count }, (_, index) => ({ kind: "key", key: `/k/${index}` }));
const absent = (wanted: readonly Wanted[]): AssumedRead => ({ wanted, answers: wanted.map(() => []) });
const WRITE: Change = { kind: "put", key: "/w", value: "x" };

describe("verifiedTransaction()", () => {
  test("compares every record with its revision, and every listing with its newest revision", () => {
    const assumed: AssumedRead = {
      wanted: [
        { kind: "key", key: "/block" },
        { kind: "key", key: "/handle" },
        { kind: "prefix", prefix: "/pools/" },
        { kind: "prefix", prefix: "/none/" },
      ],
      answers: [[entry("/block", "7")], [], [entry("/pools/a", "9007199254740993"), entry("/pools/b", "8")], []],
    };
    const changes: readonly Change[] = [
      { kind: "expect", key: "/pools/b", revision: "8" },
      { kind: "update", key: "/block", value: "new", revision: "7" },
      { kind: "create", key: "/handle", value: "new" },
    ];

    expect(verifiedTransaction(assumed, changes)).toEqual({
      comparisons: [
        { kind: "unchanged", key: "/block", revision: "7" },
        { kind: "unchanged", key: "/handle", revision: "0" },
        { kind: "none after", key: "/pools/", end: "/pools0", revision: "9007199254740993" },
        { kind: "unchanged", key: "/pools/a", revision: "9007199254740993" },
        { kind: "unchanged", key: "/pools/b", revision: "8" },
        { kind: "none after", key: "/none/", end: "/none0", revision: "0" },
      ],
      success: [
        { kind: "put", key: "/block", value: "new" },
        { kind: "put", key: "/handle", value: "new" },
      ],
      failure: [
        { kind: "range", key: "/block" },
        { kind: "range", key: "/handle" },
        { kind: "range", key: "/pools/", end: "/pools0" },
        { kind: "range", key: "/none/", end: "/none0" },
      ],
    });
  });

  test("keeps both of two comparisons that contradict each other", () => {
    const transaction = verifiedTransaction(absent([{ kind: "key", key: "/k" }]), [
      { kind: "delete", key: "/k", revision: "5" },
    ]);

    expect(transaction?.comparisons).toEqual([
      { kind: "unchanged", key: "/k", revision: "0" },
      { kind: "unchanged", key: "/k", revision: "5" },
    ]);
  });

  test("returns undefined if the transaction would exceed etcd's limits", () => {
    const update: Change = { kind: "update", key: "/other", value: "x", revision: "1" };

    expect(verifiedTransaction(absent(keys(128)), [WRITE])?.comparisons).toHaveLength(128);
    expect(verifiedTransaction(absent(keys(128)), [update])).toBeUndefined();
    expect(verifiedTransaction(absent(keys(129)), [WRITE])).toBeUndefined();
    const listing = Array.from({ length: 128 }, (_, index) => entry(`/p/${index}`, "1"));
    const assumed: AssumedRead = { wanted: [{ kind: "prefix", prefix: "/p/" }], answers: [listing] };
    expect(verifiedTransaction(assumed, [WRITE])).toBeUndefined();
  });

  test.each<Wanted>([
    { kind: "prefix", prefix: "/p/", limit: 5 },
    { kind: "prefix", prefix: "/p/", after: "/p/3" },
  ])("is none for a page, which says nothing of the rest", (page) => {
    expect(verifiedTransaction(absent([page]), [WRITE])).toBeUndefined();
  });

  test("requires that no key of a listing is newer", () => {
    const assumed: AssumedRead = { wanted: [{ kind: "prefix", prefix: "/p/" }], answers: [[]] };
    const transaction = verifiedTransaction(assumed, [WRITE]);
    const { compare } = JSON.parse(transaction ? encodeTransaction(transaction) : "{}");

    expect(compare).toEqual([
      { key: btoa("/p/"), range_end: btoa("/p0"), target: "MOD", result: "LESS", mod_revision: "1" },
    ]);
  });
});
