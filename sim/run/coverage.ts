/**
 * Which operations met which faults. A cell counts how often an operation was in progress, or began, while a fault was
 * active. An operation or a fault that is over at once still counts for what follows soon.
 */
import { FAULTS, type FaultKind } from "../script/operation.ts";

export const COVERED_OPERATIONS = [
  ...(["ADD", "DEL", "CHECK", "GC", "create pod", "delete pod", "label pod", "lose sandbox"] as const),
  ...(["apply namespace", "apply policy", "delete policy", "apply pool", "delete pool"] as const),
  ...(["join node", "delete node"] as const),
];

export type CoveredOperation = (typeof COVERED_OPERATIONS)[number];

/** By fault, then by operation. */
export type CoverageCounts = Partial<Record<FaultKind, Partial<Record<CoveredOperation, number>>>>;

export class Coverage {
  readonly counts: CoverageCounts = {};
  private readonly faults: FaultKind[] = [];
  private readonly operations: CoveredOperation[] = [];

  /** Returns a function that ends it. */
  begin(operation: CoveredOperation): () => void {
    for (const fault of new Set(this.faults)) this.count(fault, operation);
    return during(this.operations, operation);
  }

  beginFault(fault: FaultKind): () => void {
    for (const operation of this.operations) this.count(fault, operation);
    return during(this.faults, fault);
  }

  private count(fault: FaultKind, operation: CoveredOperation): void {
    const row = this.counts[fault] ?? {};
    row[operation] = (row[operation] ?? 0) + 1;
    this.counts[fault] = row;
  }
}

function during<Item>(list: Item[], item: Item): () => void {
  let isOver = false;
  list.push(item);
  return () => {
    if (!isOver) list.splice(list.indexOf(item), 1);
    isOver = true;
  };
}

export function addCoverage(left: CoverageCounts, right: CoverageCounts): CoverageCounts {
  const sum: CoverageCounts = {};
  for (const fault of FAULTS) {
    const row: Partial<Record<CoveredOperation, number>> = {};
    for (const operation of COVERED_OPERATIONS) {
      const count = countIn(left, fault, operation) + countIn(right, fault, operation);
      if (count > 0) row[operation] = count;
    }
    if (Object.keys(row).length > 0) sum[fault] = row;
  }
  return sum;
}

/** As text: a line for each operation, a column for each fault, and the gaps by name. */
export function coverageTable(counts: CoverageCounts): string {
  const first = Math.max(...COVERED_OPERATIONS.map((name) => name.length));
  const row = (name: string, cells: readonly string[]) =>
    `${name.padEnd(first)}  ${cells.map((cell, index) => cell.padStart(FAULTS[index]?.length ?? 0)).join("  ")}`;
  const lines = COVERED_OPERATIONS.map((operation) =>
    row(
      operation,
      FAULTS.map((fault) => String(countIn(counts, fault, operation))),
    ),
  );
  return [row("", FAULTS), ...lines, gapsLine(counts)].join("\n");
}

function gapsLine(counts: CoverageCounts): string {
  const gaps = coverageGaps(counts);
  return gaps.length === 0 ? "Gaps: none" : `Gaps: ${gaps.join("; ")}`;
}

/** One for each fault that did not meet every operation. */
export function coverageGaps(counts: CoverageCounts): readonly string[] {
  return FAULTS.flatMap((fault) => {
    const missing = COVERED_OPERATIONS.filter((operation) => countIn(counts, fault, operation) === 0);
    if (missing.length === 0) return [];
    return [`"${fault}" met no ${missing.length === COVERED_OPERATIONS.length ? "operation" : missing.join(", ")}`];
  });
}

function countIn(counts: CoverageCounts, fault: FaultKind, operation: CoveredOperation): number {
  return counts[fault]?.[operation] ?? 0;
}
