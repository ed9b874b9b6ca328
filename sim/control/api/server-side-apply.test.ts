import { describe, expect, test } from "bun:test";
import type { Fields } from "./field-sets.ts";
import { type ApplyOutcome, applyFields, trackUpdate } from "./server-side-apply.ts";

const manager = (name: string) => ({ name, apiVersion: "v1", time: "2026-01-01T00:00:00Z" });
const apply = (before: Fields | undefined, applied: object, name: string, isForced = true): ApplyOutcome =>
  applyFields(before, { ...applied }, { manager: manager(name), isForced });
const applied = (...args: Parameters<typeof apply>): Fields => {
  const outcome = apply(...args);
  if (outcome.kind !== "applied") throw new Error(`conflict with ${outcome.managers}`);
  return outcome.object;
};
const pods = (...containers: object[]) => ({ spec: { containers } });

describe("applyFields()", () => {
  test("removes what its manager does not apply any more, and leaves what others own", () => {
    const first = applied(undefined, pods({ name: "a", image: "1", command: ["x"] }, { name: "b", image: "1" }), "one");
    const edited = trackUpdate(
      first,
      {
        ...first,
        spec: {
          containers: [
            { name: "a", image: "1", command: ["x"], tty: true },
            { name: "b", image: "1" },
          ],
        },
      },
      manager("user"),
    );
    const second = applied(edited, pods({ name: "a", image: "2" }), "one");

    expect(second["spec"]).toEqual({ containers: [{ name: "a", image: "2", tty: true }] });
  });

  test("refuses to change what another owns, unless by force: then that one does not own it any more", () => {
    const first = applied(undefined, { data: { a: "1", b: "1" } }, "one");
    expect(apply(first, { data: { a: "2" } }, "two", false)).toEqual({ kind: "conflict", managers: ["one"] });
    expect(apply(first, { data: { a: "1" } }, "two", false).kind).toBe("applied");
    const forced = applied(first, { data: { a: "2" } }, "two");
    const again = applied(forced, { data: { b: "1" } }, "one");

    expect(again["data"]).toEqual({ a: "2", b: "1" });
  });

  test("the same again is the same object", () => {
    const first = applied(undefined, { metadata: { labels: { a: "1" } }, data: { a: "1" } }, "one");

    expect(applied(first, { metadata: { labels: { a: "1" } }, data: { a: "1" } }, "one")).toEqual(first);
  });
});

describe("trackUpdate()", () => {
  test("gives a field to whoever changes its value, so that an apply puts it back only by force", () => {
    const first = applied(undefined, { data: { a: "1", b: "1" } }, "one");
    const edited = trackUpdate(first, { ...first, data: { a: "9", b: "1" } }, manager("user"));

    expect(apply(edited, { data: { a: "1", b: "1" } }, "one", false)).toEqual({ kind: "conflict", managers: ["user"] });
    expect(applied(edited, { data: { a: "1", b: "1" } }, "one")["data"]).toEqual({ a: "1", b: "1" });
  });

  test("accepts other owners from the writer", () => {
    const first = applied(undefined, { data: { a: "1" } }, "one");
    const metadata = {
      managedFields: [
        {
          manager: "two",
          operation: "Apply",
          apiVersion: "v1",
          time: "",
          fieldsType: "FieldsV1",
          fieldsV1: { "f:data": { "f:a": {} } },
        },
      ],
    };
    const given = trackUpdate(first, { ...first, metadata }, manager("user"));

    expect(applied(given, {}, "two")["data"]).toBeUndefined();
  });
});
