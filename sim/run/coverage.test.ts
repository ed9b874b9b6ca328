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

  test("sums of runs name what none of them met", () => {
    const [one, other] = [new Coverage(), new Coverage()];
    one.beginFault("cut");
    one.begin("ADD");
    for (const fault of FAULTS) other.beginFault(fault);
    for (const operation of COVERED_OPERATIONS) if (operation !== "GC") other.begin(operation);
    const sum = addCoverage(one.counts, other.counts);

    expect(sum.cut).toMatchObject({ ADD: 2, DEL: 1 });
    expect(coverageGaps(sum)).toEqual(FAULTS.map((fault) => `"${fault}" met no GC`));
    expect(coverageTable(sum).split("\n")).toHaveLength(COVERED_OPERATIONS.length + 2);
  });
});
