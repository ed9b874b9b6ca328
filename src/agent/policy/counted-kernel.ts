/** Counts the batches that are sent to the kernel, and how long they take. */
import type { BatchCounts } from "./facts.ts";
import type { KernelTable } from "./kernel-table.ts";

export interface CountedKernel {
  readonly kernel: KernelTable;
  counts(): BatchCounts;
}

export function countBatches(kernel: KernelTable, elapsed: () => number): CountedKernel {
  let [count, milliseconds, replacements] = [0, 0, 0];
  const measure = <Result>(work: () => Result): Result => {
    const begun = elapsed();
    try {
      return work();
    } finally {
      count++;
      milliseconds += elapsed() - begun;
    }
  };
  return {
    kernel: {
      adopt: (table) => measure(() => kernel.adopt(table)),
      replace: (table) => {
        measure(() => kernel.replace(table));
        replacements++;
      },
      change: (table, delta) => measure(() => kernel.change(table, delta)),
      remove: () => measure(() => kernel.remove()),
      notice: () => kernel.notice(),
      counts: () => kernel.counts(),
      difference: (table, sets) => kernel.difference(table, sets),
      elementDifference: (table, sets) => kernel.elementDifference(table, sets),
      close: () => kernel.close(),
    },
    counts: () => ({ count, milliseconds, replacements }),
  };
}
