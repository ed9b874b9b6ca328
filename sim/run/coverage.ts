/**
 * Which operations met which faults. A cell counts how often an operation was in progress, or began, while a fault was
 * active that touches one of the places which the operation concerns. What is over at once still counts for what follows
 * soon.
 */
import { FAULTS, type FaultKind } from "../script/operation.ts";

/** The runtime does them on one node, and nobody else has to do with them. */
const OPERATIONS_OF_NODE = ["ADD", "DEL", "CHECK", "GC", "lose sandbox"] as const;

export const COVERED_OPERATIONS = [
  ...OPERATIONS_OF_NODE,
  ...(["create pod", "delete pod", "label pod"] as const),
  ...(["apply namespace", "apply policy", "delete policy", "apply pool", "delete pool"] as const),
  ...(["join node", "delete node"] as const),
];

export type CoveredOperation = (typeof COVERED_OPERATIONS)[number];

const FAULTS_OF_CONTROLLERS: readonly FaultKind[] = ["kill controllers", "freeze controllers", "mislead controllers"];

/** How long something that is over at once counts as in progress. */
export const SHORT_WHILE = 5_000;

/** By fault, then by operation. */
export type CoverageCounts = Partial<Record<FaultKind, Partial<Record<CoveredOperation, number>>>>;

/** Nodes and copies of the controllers; `undefined`: all of them. */
type Places = readonly string[] | undefined;

interface InProgress<Kind> {
  readonly kind: Kind;
  readonly places: Places;
}

export class Coverage {
  readonly counts: CoverageCounts = {};
  private readonly faults = new Set<InProgress<FaultKind>>();
  private readonly operations = new Set<InProgress<CoveredOperation>>();

  /** `places`: those that it concerns. Returns a function that ends it. */
  begin(kind: CoveredOperation, places?: readonly string[]): () => void {
    const met = [...this.faults].filter((fault) => isShared(fault.places, places));
    for (const fault of new Set(met.map((each) => each.kind))) this.count(fault, kind);
    return during(this.operations, { kind, places });
  }

  /** `place`: the one that it touches. */
  beginFault(kind: FaultKind, place?: string): () => void {
    const places = place === undefined ? undefined : [place];
    for (const operation of this.operations) {
      if (isShared(operation.places, places)) this.count(kind, operation.kind);
    }
    return during(this.faults, { kind, places });
  }

  private count(fault: FaultKind, operation: CoveredOperation): void {
    const row = this.counts[fault] ?? {};
    row[operation] = (row[operation] ?? 0) + 1;
    this.counts[fault] = row;
  }
}

function isShared(left: Places, right: Places): boolean {
  return left === undefined || right === undefined || left.some((place) => right.includes(place));
}

function during<Item>(all: Set<Item>, item: Item): () => void {
  all.add(item);
  return () => {
    all.delete(item);
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

/** As text: a line for each fault, a column for each operation, and the gaps by name. */
export function coverageTable(counts: CoverageCounts): string {
  const first = Math.max(...FAULTS.map((name) => name.length));
  const row = (name: string, cells: readonly string[]) =>
    `${name.padEnd(first)}  ${cells.map((cell, index) => cell.padStart(COVERED_OPERATIONS[index]?.length ?? 0)).join("  ")}`;
  const lines = FAULTS.map((fault) =>
    row(
      fault,
      COVERED_OPERATIONS.map((operation) =>
        canMeet(fault, operation) ? String(countIn(counts, fault, operation)) : "-",
      ),
    ),
  );
  return [row("", COVERED_OPERATIONS), ...lines, gapsLine(counts)].join("\n");
}

function gapsLine(counts: CoverageCounts): string {
  const gaps = coverageGaps(counts);
  return gaps.length === 0 ? "Gaps: none" : `Gaps: ${gaps.join("; ")}`;
}

/** One for each fault that did not meet every operation that it can. */
export function coverageGaps(counts: CoverageCounts): readonly string[] {
  return FAULTS.flatMap((fault) => {
    const possible = COVERED_OPERATIONS.filter((operation) => canMeet(fault, operation));
    const missing = possible.filter((operation) => countIn(counts, fault, operation) === 0);
    if (missing.length === 0) return [];
    return [`"${fault}" met no ${missing.length === possible.length ? "operation" : missing.join(", ")}`];
  });
}

/** What a node does alone has nothing to do with the controllers. */
function canMeet(fault: FaultKind, operation: CoveredOperation): boolean {
  return !FAULTS_OF_CONTROLLERS.includes(fault) || !(OPERATIONS_OF_NODE as readonly string[]).includes(operation);
}

function countIn(counts: CoverageCounts, fault: FaultKind, operation: CoveredOperation): number {
  return counts[fault]?.[operation] ?? 0;
}
