/**
 * The CPU time of a running process, from its kernel clock: in nanoseconds,
 * where /proc has hundredths of a second, and including ended threads, which a
 * sum over its threads would miss.
 */
import { dlopen } from "bun:ffi";

/** CPUCLOCK_SCHED of <linux/posix-timers.h>: the clock of the whole process. */
const WHOLE_PROCESS = 2;

const { clock_gettime } = dlopen("libc.so.6", {
  clock_gettime: { args: ["i32", "ptr"], returns: "i32" },
}).symbols;

export function processorMilliseconds(pid: number): number {
  const time = new BigInt64Array(2);
  if (clock_gettime((~pid << 3) | WHOLE_PROCESS, time) !== 0) {
    throw new Error(`Cannot read the CPU time of process ${pid}: no such process`);
  }
  const [seconds = 0n, nanoseconds = 0n] = time;
  return Number(seconds) * 1_000 + Number(nanoseconds) / 1_000_000;
}
