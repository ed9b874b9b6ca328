import { describe, expect, test } from "bun:test";
import { FAULTS } from "../script/operation.ts";
import { addCoverage, COVERED_OPERATIONS, Coverage, coverageGaps, coverageTable } from "./coverage.ts";

describe("Coverage", () => {
  test("counts operations that were in progress when a fault began, and those that began during it", () => {
    const coverage = new Coverage();
    const endAdd = coverage.begin("ADD");
    const heal = coverage.beginFault("cut");
    coverage.begin("DEL")();
    heal();
    coverage.begin("CHECK")();
    endAdd();
    coverage.beginFault("compact API")();

    expect(coverage.counts).toEqual({ cut: { ADD: 1, DEL: 1 } });
  });

  test("counts only what concerns a place that the fault touches", () => {
    const coverage = new Coverage();
    coverage.begin("ADD", ["node-1"]);
    coverage.begin("ADD", ["node-2"]);
    coverage.begin("create pod", ["node-2", "controllers-1"]);
    coverage.begin("apply policy");
    coverage.beginFault("cut", "node-1");
    coverage.beginFault("freeze controllers", "controllers-1");
    coverage.beginFault("restart API");
    coverage.begin("DEL", ["node-1"]);

    expect(coverage.counts).toEqual({
      cut: { ADD: 1, "apply policy": 1, DEL: 1 },
      "freeze controllers": { "create pod": 1, "apply policy": 1 },
      "restart API": { ADD: 2, "create pod": 1, "apply policy": 1, DEL: 1 },
    });
  });

  test("sums of runs name what none of them met, unless it cannot be", () => {
    const [one, other] = [new Coverage(), new Coverage()];
    one.beginFault("cut");
    one.begin("ADD");
    for (const fault of FAULTS) other.beginFault(fault);
    for (const operation of COVERED_OPERATIONS) if (operation !== "GC") other.begin(operation);
    const sum = addCoverage(one.counts, other.counts);

    expect(sum.cut).toMatchObject({ ADD: 2, DEL: 1 });
    const possible = FAULTS.filter((fault) => !fault.endsWith("controllers"));
    expect(coverageGaps(sum)).toEqual(possible.map((fault) => `"${fault}" met no GC`));
    expect(coverageTable(sum).split("\n")).toHaveLength(FAULTS.length + 2);
  });
});
