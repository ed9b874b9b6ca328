import { describe, expect, test } from "bun:test";
import { type HeldRecord, KindSnapshot } from "./kind-snapshot.ts";
import { RefinedKind } from "./refined-kind.ts";

interface Value {
  readonly name: string;
  readonly isKnown?: boolean;
}

const held = (key: string, revision = "1"): HeldRecord<unknown> => ({
  ...{ key, revision, digest: Number(revision), kind: "readable", value: { name: key } satisfies Value },
});
const unreadable = { ...held("b"), kind: "unreadable", failure: new Error("no") } as unknown as HeldRecord<unknown>;

function open({ isReady = true } = {}) {
  const known = new Set<string>();
  const asked: string[] = [];
  const state = { isReady };
  const kind = new RefinedKind("things", {
    isReady: () => state.isReady,
    refine(key, value) {
      asked.push(value === undefined ? `no ${key}` : key);
      return value !== undefined && known.has(key) ? { ...(value as Value), isKnown: true } : value;
    },
  });
  let raw = KindSnapshot.empty<unknown>();
  const update = (revision: string, changes: Readonly<Record<string, HeldRecord<unknown> | undefined>>) => {
    raw = raw.with(revision, new Map(Object.entries(changes)));
    return kind.update({ kind: "things", snapshot: raw, changed: Object.keys(changes) });
  };
  return { kind, known, asked, state, update, raw: () => raw };
}

describe("RefinedKind", () => {
  test("publishes the records themselves while nothing is refined", () => {
    const { update, raw } = open();
    const made = update("1", { a: held("a"), b: unreadable });

    expect(made?.changed.toSorted()).toEqual(["a", "b"]);
    expect([made?.snapshot.held("a"), made?.snapshot.held("b")]).toEqual([raw().held("a"), raw().held("b")]);
    expect(made?.snapshot.held("a")).toBe(raw().held("a") as HeldRecord<unknown>);
  });

  test("refines only the keys that changed, or that may have other values now", () => {
    const { update, kind, known, asked } = open();
    update("1", { a: held("a"), b: held("b") });
    asked.length = 0;
    known.add("a");
    const made = kind.refresh(["a"]);

    expect([made?.changed, made?.snapshot.get("a")]).toEqual([["a"], { name: "a", isKnown: true }]);
    expect(kind.refresh(["a"])).toBeUndefined();
    expect(update("2", { b: held("b", "2") })?.changed).toEqual(["b"]);
    expect(asked).toEqual(["a", "a", "b"]);
    known.delete("a");
    expect(kind.refresh(["a"])?.snapshot.get("a")).toEqual({ name: "a" });
  });

  test("says which record is gone", () => {
    const { update, asked } = open();
    update("1", { a: held("a") });
    const made = update("2", { a: undefined });

    expect([made?.changed, made?.snapshot.size, asked.at(-1)]).toEqual([["a"], 0, "no a"]);
  });

  test("publishes nothing until it is ready, and then everything", () => {
    const { update, kind, state } = open({ isReady: false });
    expect(update("1", { a: held("a") })).toBeUndefined();
    expect(update("2", { a: undefined, b: held("b") })).toBeUndefined();
    expect(kind.refresh([])).toBeUndefined();
    state.isReady = true;

    expect(kind.refresh([])?.changed).toEqual(["b"]);
  });

  test("publishes an empty kind, and a new revision without changes", () => {
    const { update } = open();
    expect(update("1", {})?.snapshot.revision).toBe("1");
    expect(update("2", {})?.snapshot.revision).toBe("2");
  });
});
