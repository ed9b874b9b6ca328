import { describe, expect, test } from "bun:test";
import { policyTable, type SystemResult } from "../../bench/support/policy-table.ts";

function resultOf(name: string, factor: number): SystemResult {
  const memory = { residentBytes: factor * 100e6, proportionalBytes: factor * 90e6 };
  const times = { wallMilliseconds: [1, 2, 30].map((each) => each * factor), cpuMilliseconds: factor * 4 };
  return {
    name,
    starts: [{ wallMilliseconds: factor * 1000, cpuMilliseconds: factor * 500 }],
    memory,
    memoryAfterwards: memory,
    idle: factor * 0.001,
    changes: { remote: times, policy: times, local: times },
  };
}

describe("policyTable()", () => {
  test("shows the ratio of the last system to the first", () => {
    const table = policyTable([resultOf("peer", 2), resultOf("ours", 1)]);

    expect(table).toContain("| start to first full apply, wall     |  2000 ms |  1000 ms |  0.50 |");
    expect(table).toContain("| idle CPU                            |  0.200 % |  0.100 % |  0.50 |");
    expect(table).toContain("| remote pod -> element, median       |  4.00 ms |  2.00 ms |  0.50 |");
  });

  test("shows no ratio for one system", () => {
    expect(policyTable([resultOf("ours", 1)])).toContain("| idle CPU                            |  0.100 % |       |");
  });
});
