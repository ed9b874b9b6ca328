/**
 * Counts the batches that are sent to the kernel, and how long they take. Of one that may take minutes the log has a line
 * before it, and of one that took long a line after it: nothing else of the agent runs meanwhile.
 */
import type { DesiredTable, TableDelta } from "../../policy/table/desired-table.ts";
import type { BatchCounts } from "./facts.ts";
import type { KernelTable } from "./kernel-table.ts";

export interface CountedKernel {
  readonly kernel: KernelTable;
  counts(): BatchCounts;
}

export interface BatchMeans {
  readonly elapsed: () => number;
  readonly report: (message: string) => void;
  /** Runs what the kernel may be busy with for minutes. */
  readonly patiently: <Result>(work: () => Result) => Result;
}

/** The kernel needs a second or so for either. */
const MANY_SETS = 2_000;
const MANY_ELEMENTS = 100_000;
const LONG_MILLISECONDS = 10_000;

export function countBatches(kernel: KernelTable, { elapsed, report, patiently }: BatchMeans): CountedKernel {
  let [count, milliseconds, replacements] = [0, 0, 0];
  const write = <Result>(work: () => Result, size: Size): Result => {
    if (size.sets < MANY_SETS && size.elements < MANY_ELEMENTS) return measure(work, size);
    report(`Writing ${describe(size)}: this may take minutes, and no other change is made meanwhile`);
    return measure(work, size, 0);
  };
  const measure = <Result>(work: () => Result, size: Size, longMilliseconds = LONG_MILLISECONDS): Result => {
    const begun = elapsed();
    try {
      return patiently(work);
    } finally {
      const taken = elapsed() - begun;
      count++;
      milliseconds += taken;
      if (taken >= longMilliseconds) report(`The kernel took ${Math.round(taken / 1_000)} s for ${describe(size)}`);
    }
  };
  return {
    kernel: {
      adopt: (table) => measure(() => kernel.adopt(table), sizeOfTable(table)),
      replace: (table) => {
        write(() => kernel.replace(table), sizeOfTable(table));
        replacements++;
      },
      change: (table, delta) => write(() => kernel.change(table, delta), sizeOfDelta(table, delta)),
      remove: () => measure(() => kernel.remove(), NOTHING),
      notice: () => kernel.notice(),
      counts: () => kernel.counts(),
      difference: (table, sets) => patiently(() => kernel.difference(table, sets)),
      elementDifference: (table, sets) => patiently(() => kernel.elementDifference(table, sets)),
      close: () => kernel.close(),
    },
    counts: () => ({ count, milliseconds, replacements }),
  };
}

interface Size {
  readonly sets: number;
  readonly elements: number;
}

const NOTHING: Size = { sets: 0, elements: 0 };

function describe({ sets, elements }: Size): string {
  return `${sets} sets and ${elements} elements of the policy table`;
}

function sizeOfTable({ sets }: DesiredTable): Size {
  return { sets: sets.size, elements: sets.values().reduce((sum, { elements }) => sum + elements.size, 0) };
}

function sizeOfDelta({ sets }: DesiredTable, delta: TableDelta): Size {
  const created = delta.sets.keys().reduce((sum, name) => sum + (sets.get(name)?.elements.size ?? 0), 0);
  const changed = delta.elements.values().reduce((sum, { removed, added }) => sum + removed.length + added.length, 0);
  return { sets: delta.sets.size, elements: created + changed };
}
