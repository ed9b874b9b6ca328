import { describe, expect, test } from "bun:test";
import { type AlpResult, alpMemoryTable, alpTimesTable } from "../../bench/support/alp-table.ts";

function resultOf(authorizer: string, milliseconds: number, load = "1 rule"): AlpResult {
  const memory = (factor: number) => ({
    residentBytes: factor * 40e6,
    proportionalBytes: factor * 20e6,
    anonymousBytes: factor * 10e6,
  });
  return {
    load,
    authorizer,
    alone: [milliseconds, milliseconds, milliseconds],
    atOnce: [milliseconds * 10],
    process: { cpuMilliseconds: milliseconds / 2, idle: memory(1), loaded: memory(milliseconds) },
  };
}

const { process: _, ...alone } = resultOf("none", 0.1, "");
const results = [alone, resultOf("peer", 0.5), resultOf("ours", 0.3), resultOf("ours", 0.4, "2 rules")];

/** Of the row with the authorizer, without padding. */
function cellsOf(table: string, row: number): readonly string[] {
  const line = table.trim().split("\n")[row + 2] ?? "";
  return line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
}

describe("alpTimesTable()", () => {
  const table = alpTimesTable(results, { peer: "peer", concurrency: 16 });

  test("shows what a decision adds to the proxy alone, and the ratio of that to the peer with the same policies", () => {
    expect(cellsOf(table, 1)).toEqual([
      "1 rule",
      "peer",
      "500",
      "500",
      "400",
      "400",
      "",
      "5000",
      "5000",
      "4000",
      "250",
    ]);
    expect(cellsOf(table, 2).slice(2, 7)).toEqual(["300", "300", "200", "200", "0.50"]);
  });

  test("shows no difference for the proxy alone, and no ratio without a peer", () => {
    expect(cellsOf(table, 0)).toEqual(["", "none", "100", "100", "", "", "", "1000", "1000", "", ""]);
    expect(cellsOf(table, 3)[6]).toBe("");
  });
});

describe("alpMemoryTable()", () => {
  test("has a row for each process, in megabytes", () => {
    const table = alpMemoryTable(results);

    expect(cellsOf(table, 0)).toEqual(["1 rule", "peer", "40.0", "20.0", "10.0", "20.0", "10.0", "5.0"]);
    expect(table).not.toContain("none");
  });
});
