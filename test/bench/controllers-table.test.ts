import { describe, expect, test } from "bun:test";
import type { ControllersResult } from "../../bench/support/controllers-measurements.ts";
import { controllersTable, needlessWrites } from "../../bench/support/controllers-table.ts";

const RESULT: ControllersResult = {
  name: "ours",
  syncMilliseconds: 12_340,
  syncCpuMilliseconds: 4_000,
  syncWrites: 12_500,
  memoryBytes: 100e6,
  idle: 0.001,
  idleWrites: { datastore: 0, api: [] },
  copyMilliseconds: [1, 2, 30],
  restartWrites: { datastore: 0, api: [] },
};

describe("controllersTable()", () => {
  test("has a column for each system", () => {
    const table = controllersTable([{ ...RESULT, name: "peer" }, RESULT]);

    expect(table).toContain("| first sync, wall                          |  12.3 s |  12.3 s |");
    expect(table).toContain("| policy -> record, maximum                 | 30.0 ms | 30.0 ms |");
  });
});

describe("needlessWrites()", () => {
  test("is empty if nothing was written, and names what was", () => {
    expect(needlessWrites(RESULT)).toEqual([]);
    const writes = { datastore: 2, api: ["update nodes"] };
    expect(needlessWrites({ ...RESULT, restartWrites: writes })).toEqual(["2 to etcd", "update nodes"]);
  });
});
