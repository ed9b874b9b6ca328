import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type DatastoreEvent, type Entry, HistoryGone } from "../datastore.ts";
import { FeedCopy } from "./feed-copy.ts";

const PREFIX = "/k/";
const PLAN = {
  watched: PREFIX,
  kinds: new Map([["things", { prefix: PREFIX, decode: ({ value }: Entry) => value }]]),
};
const FIRST = 10;

/** Commit number i has the revision FIRST + 1 + i. */
type Commit = readonly { readonly key: string; readonly value: string | undefined }[];

const commits = fc.array(
  fc.uniqueArray(
    fc.record({
      key: fc.nat(5).map((name) => `${PREFIX}${name}`),
      value: fc.option(fc.constantFrom("a", "b"), { nil: undefined, freq: 2 }),
    }),
    { minLength: 1, maxLength: 3, selector: ({ key }) => key },
  ),
  { minLength: 1, maxLength: 25 },
);

/** What a connection does next, as fractions of the remaining history. */
const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("deliver" as const), count: fc.integer({ min: 1, max: 5 }) }),
    fc.record({ kind: fc.constant("break" as const) }),
    fc.record({ kind: fc.constant("repeat" as const), back: fc.integer({ min: 1, max: 8 }), count: fc.nat(4) }),
  ),
  { maxLength: 40 },
);

function entriesAt(history: readonly Commit[], revision: number): ReadonlyMap<string, Entry> {
  const entries = new Map<string, Entry>();
  history.slice(0, revision - FIRST).forEach((commit, index) => {
    for (const { key, value } of commit) {
      if (value === undefined) entries.delete(key);
      else entries.set(key, { key, value, revision: String(FIRST + 1 + index) });
    }
  });
  return entries;
}

function eventsOf(history: readonly Commit[]): readonly (readonly Exclude<DatastoreEvent, { kind: "bookmark" }>[])[] {
  return history.map((commit, index) =>
    commit.map(({ key, value }) => {
      const revision = String(FIRST + 1 + index);
      return value === undefined ? { kind: "delete", key, revision } : { kind: "put", entry: { key, value, revision } };
    }),
  );
}

function listAt(copy: FeedCopy, history: readonly Commit[], moments: readonly number[]): void {
  const keys = Array.from({ length: 6 }, (_, name) => `${PREFIX}${name}`);
  moments.forEach((moment, page) => {
    const shown = keys.slice(page * 2, page === moments.length - 1 ? undefined : page * 2 + 2);
    const now = entriesAt(history, moment);
    const entries = shown.flatMap((key) => now.get(key) ?? []);
    copy.addPage("things", { entries, revision: String(moment) });
  });
  copy.endList();
}

describe("FeedCopy", () => {
  test("publishes only states of the store, with any order of pages, losses and duplicates", () => {
    fc.assert(
      fc.property(commits, fc.array(fc.nat(100), { minLength: 1, maxLength: 3 }), steps, (history, parts, script) => {
        const last = FIRST + history.length;
        const moments = parts
          .map((part) => FIRST + Math.round((part / 100) * history.length))
          .toSorted((a, b) => a - b);
        const copy = new FeedCopy(PLAN);
        const events = eventsOf(history);
        const published: [string, unknown][] = [];
        const reach = (revision: number) => {
          const [update] = copy.reach(String(revision)) ?? [];
          if (update) published.push([update.snapshot.revision, Object.fromEntries(update.snapshot)]);
        };
        listAt(copy, history, moments);
        let delivered = Number(copy.bookmark);
        const collect = (from: number, to: number) => {
          for (const event of events.slice(from - FIRST, to - FIRST).flat()) copy.collect(event);
        };
        for (const step of [...script, { kind: "deliver" as const, count: history.length }]) {
          if (step.kind === "deliver") {
            // A duplicate may also arrive before the bookmark of the original.
            const to = Math.min(last, delivered + step.count);
            collect(delivered, to);
            collect(delivered, to - 1);
            reach(to);
            delivered = to;
          } else if (step.kind === "repeat") {
            const from = Math.max(FIRST, delivered - step.back);
            collect(from, Math.min(delivered, from + step.count));
          } else {
            collect(delivered, Math.min(last, delivered + 2));
            copy.interrupt();
          }
        }

        for (const [revision, state] of published) {
          const expected = entriesAt(history, Number(revision));
          expect(state).toEqual(Object.fromEntries(Array.from(expected, ([key, { value }]) => [key, value])));
        }
        expect(published.at(-1)?.[0]).toBe(String(last));
      }),
      { numRuns: 500 },
    );
  });

  test("publishes nothing before a bookmark has reached the last page", () => {
    const copy = new FeedCopy(PLAN);
    copy.addPage("things", { entries: [], revision: "5" });
    copy.addPage("things", { entries: [{ key: "/k/1", value: "a", revision: "7" }], revision: "8" });
    copy.endList();

    expect([copy.bookmark, copy.reach("5"), copy.reach("7")]).toEqual(["5", undefined, undefined]);
    expect(copy.reach("8")).toMatchObject([{ kind: "things", changed: ["/k/1"] }]);
  });

  test("of a kind for which equal is the same, a write that changes no value is no change, and has its revision", () => {
    const source = { prefix: PREFIX, decode: ({ value }: Entry) => value.slice(0, 1), equalIsSame: true } as const;
    const copy = new FeedCopy({ ...PLAN, kinds: new Map([["things", source]]) });
    const put = (value: string, revision: string) => {
      copy.collect({ kind: "put", entry: { key: "/k/1", value, revision } });
      return copy.reach(revision)?.[0];
    };
    copy.addPage("things", { entries: [{ key: "/k/1", value: "a1", revision: "4" }], revision: "5" });
    copy.endList();
    copy.reach("5");

    const same = put("a2", "6");
    expect([same?.changed, same?.snapshot.revisionOf("/k/1")]).toEqual([[], "6"]);
    expect(put("b2", "7")?.changed).toEqual(["/k/1"]);
    copy.collect({ kind: "delete", key: "/k/1", revision: "8" });
    expect(copy.reach("8")?.[0]?.changed).toEqual(["/k/1"]);
  });

  test("detects a store whose revision goes backwards", () => {
    const copy = new FeedCopy(PLAN);
    copy.addPage("things", { entries: [], revision: "5" });
    copy.endList();
    copy.reach("9");

    expect(() => copy.reach("8")).toThrow(HistoryGone);
  });

  test("does not return to older states of records that are ahead of the bookmark", () => {
    const copy = new FeedCopy(PLAN);
    const put = (value: string, revision: string) =>
      copy.collect({ kind: "put", entry: { key: "/k/1", value, revision } });
    const shown = () => Array.from(copy.reach("5") ?? [], ({ snapshot }) => Object.fromEntries(snapshot))[0];
    copy.addPage("things", { entries: [{ key: "/k/2", value: "listed", revision: "7" }], revision: "5" });
    copy.endList();
    shown();
    put("a", "6");
    shown();
    put("b", "8");
    expect(shown()).toEqual({ "/k/1": "b", "/k/2": "listed" });

    copy.interrupt();
    put("a", "6");
    copy.collect({ kind: "put", entry: { key: "/k/2", value: "older", revision: "6" } });
    expect(shown()).toEqual({ "/k/1": "b", "/k/2": "listed" });
    copy.collect({ kind: "delete", key: "/k/1", revision: "9" });
    expect(shown()).toEqual({ "/k/2": "listed" });
    put("b", "8");
    expect(shown()).toEqual({ "/k/2": "listed" });
    put("c", "10");
    expect(shown()).toEqual({ "/k/1": "c", "/k/2": "listed" });
  });

  test("decodes a record once, however often it is listed", () => {
    let decoded = 0;
    const decode = ({ value }: Entry) => {
      decoded += 1;
      return value;
    };
    const copy = new FeedCopy({ ...PLAN, kinds: new Map([["things", { prefix: PREFIX, decode }]]) });
    for (const revision of ["5", "6"]) {
      copy.startOver();
      copy.addPage("things", { entries: [{ key: "/k/1", value: "a", revision: "4" }], revision });
      copy.endList();
      copy.reach(revision);
    }

    expect(decoded).toBe(1);
  });
});
