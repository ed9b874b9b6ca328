/** The CPU time and memory of a daemon together with the processes that it started. */
import { readdirSync, readFileSync } from "node:fs";
import { processorMilliseconds } from "./processor-clock.ts";

/** Of /proc/<pid>/stat, in hundredths of a second. */
const MILLISECONDS_PER_TICK = 10;
/** The CPU times of ended children, counted from the end of the process name. */
const CHILDREN_TIMES = [13, 14];

export interface TreeMemory {
  /** Pages shared with other processes are divided among them. */
  readonly proportionalBytes: number;
  readonly residentBytes: number;
}

/** Includes processes that have ended, as soon as their parent has noticed. */
export function treeCpuMilliseconds(pid: number): number {
  for (;;) {
    try {
      return sum(treeOf(pid), (each) => processorMilliseconds(each) + endedChildren(each));
    } catch (error) {
      // A child has ended meanwhile: its parent counts its time from now on.
      if (!isRunning(pid)) throw error;
    }
  }
}

export function treeMemory(pid: number): TreeMemory {
  const tree = treeOf(pid);
  return {
    proportionalBytes: sum(tree, (each) => kilobytes(each, "smaps_rollup", /^Pss:\s+(\d+)/m) * 1024),
    residentBytes: sum(tree, (each) => kilobytes(each, "status", /^VmRSS:\s+(\d+)/m) * 1024),
  };
}

function treeOf(pid: number): readonly number[] {
  const tasks = readdirSync(`/proc/${pid}/task`);
  const children = tasks.flatMap((task) => read(`/proc/${pid}/task/${task}/children`).split(" ").filter(Boolean));
  return [pid, ...children.flatMap((child) => (isRunning(Number(child)) ? treeOf(Number(child)) : []))];
}

function isRunning(pid: number): boolean {
  return read(`/proc/${pid}/stat`) !== "" && !/\) Z /.test(read(`/proc/${pid}/stat`));
}

function endedChildren(pid: number): number {
  const stat = read(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return sum(CHILDREN_TIMES, (place) => Number(fields[place]) * MILLISECONDS_PER_TICK);
}

function kilobytes(pid: number, file: string, pattern: RegExp): number {
  return Number(pattern.exec(read(`/proc/${pid}/${file}`))?.[1] ?? 0);
}

/** Processes end at any time. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return "";
  }
}

function sum<Value>(values: readonly Value[], of: (value: Value) => number): number {
  return values.reduce((total, value) => total + of(value), 0);
}
