import { describe, expect, test } from "bun:test";
import type { DesiredTable, TableDelta } from "../../policy/table/desired-table.ts";
import { countBatches } from "./counted-kernel.ts";
import type { KernelTable } from "./kernel-table.ts";

const NO_CHANGE: TableDelta = { chains: new Map(), sets: new Map(), elements: new Map() };

function tableOf(sets: number): DesiredTable {
  const names = Array.from({ length: sets }, (_, index) => `s_${index}`);
  return {
    chains: new Map(),
    sets: new Map(names.map((name) => [name, { set: { name, key: ["ipv4_addr"] }, elements: new Map() }])),
  };
}

/** A kernel that takes so many seconds for everything. */
function counted(seconds: number) {
  let [now, isPatient] = [0, false];
  const [lines, impatient]: [string[], string[]] = [[], []];
  const take = (what: string) => {
    now += seconds * 1_000;
    if (!isPatient) impatient.push(what);
    return undefined;
  };
  const kernel: KernelTable = {
    ...{ adopt: () => take("adopt"), replace: () => take("replace"), change: () => take("change") },
    ...{ remove: () => take("remove"), difference: () => take("difference") },
    elementDifference: () => take("elementDifference"),
    ...{ notice: () => ({ kind: "nothing" }), counts: () => [], close: () => {} },
  };
  const batches = countBatches(kernel, {
    elapsed: () => now,
    report: (message) => void lines.push(message),
    patiently: (work) => {
      isPatient = true;
      try {
        return work();
      } finally {
        isPatient = false;
      }
    },
  });
  return { ...batches, lines, impatient };
}

describe("countBatches()", () => {
  test("is patient with whatever takes longer the larger the table is", () => {
    const { kernel, impatient } = counted(200);
    kernel.adopt(tableOf(0));
    kernel.replace(tableOf(0));
    kernel.change(tableOf(0), NO_CHANGE);
    kernel.difference(tableOf(0));
    kernel.elementDifference(tableOf(0), []);
    kernel.remove();
    expect(impatient).toEqual([]);
  });

  test("says before a large write what the kernel is about to do, and afterwards how long it took", () => {
    const { kernel, lines } = counted(37);
    kernel.replace(tableOf(2_000));
    expect(lines).toEqual([
      expect.stringMatching(/^Writing 2000 sets and 0 elements .* may take minutes/),
      expect.stringContaining("The kernel took 37 s for 2000 sets"),
    ]);
  });

  test("says afterwards that a small one took long, and nothing of any other", () => {
    const [slow, fast] = [counted(10), counted(1)];
    for (const { kernel } of [slow, fast]) kernel.change(tableOf(1), NO_CHANGE);
    expect(slow.lines).toEqual([expect.stringContaining("The kernel took 10 s")]);
    expect([fast.lines, fast.counts()]).toEqual([[], { count: 1, milliseconds: 1_000, replacements: 0 }]);
  });
});
