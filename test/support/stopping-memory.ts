/** The memory datastore in a process that dies: after so many single writes nothing is written or read any more. */
import type { Atomicity, Datastore } from "../../src/datastore/datastore.ts";
import { openMemory } from "../../src/datastore/memory/memory.ts";
import type { MemoryTable } from "../../src/datastore/memory/table.ts";

export const LEVELS: readonly Atomicity[] = ["all changes", "one object"];

class Stopped extends Error {}

/** `after`: 0 stops before the first write; 3 lets the third write happen and loses its answer. */
export function stoppingMemory(table: MemoryTable, atomicity: Atomicity, after: number): Datastore {
  let written = 0;
  const stopIfDue = () => {
    if (written === after) throw new Stopped(`stopped after ${after} writes`);
  };
  return openMemory(table, {
    atomicity,
    around: async (kind, request) => {
      // Before the first write the process still reads.
      if (kind === "write" || written > 0) stopIfDue();
      const answer = request();
      if (kind === "write") {
        written += 1;
        stopIfDue();
      }
      return answer;
    },
  });
}

/** Whether the work was stopped; any other failure is passed on. */
export async function isStopped(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return false;
  } catch (error) {
    if (error instanceof Stopped) return true;
    throw error;
  }
}
