/** A candidate that is a command: one process per operation, with CPU time and peak memory from the kernel. */
import type { Command } from "./command-line.ts";
import type { Candidate, Cost } from "./comparison.ts";
import { peakMemoryOf } from "./peak-memory.ts";

/** A command must not fail: any exit code except 0 ends the benchmark. */
export function commandCandidate(
  name: string,
  command: Command,
  around: Pick<Candidate, "before" | "after"> = {},
): Candidate {
  return {
    name,
    ...around,
    run: () => runCommand(command),
    peakMemory: () => peakMemoryOf(command),
  };
}

/** The output is read through a pipe, as a runtime does: the kernel treats /dev/null differently. */
export async function runCommand({ command, environment = {}, stdin }: Command): Promise<Cost> {
  const child = Bun.spawn([...command], {
    env: { ...environment },
    stdin: stdin === undefined ? "ignore" : new TextEncoder().encode(stdin),
    stdout: "pipe",
    stderr: "ignore",
  });
  const [code, output] = await Promise.all([child.exited, new Response(child.stdout).text()]);
  if (code !== 0) throw new Error(`Cannot measure "${command.join(" ")}": it ended with exit code ${code}: ${output}`);
  return { cpuMilliseconds: Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1000 };
}
