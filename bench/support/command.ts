/** A contender that is a command: one process per operation, its CPU time and its peak memory told by the kernel. */
import type { Command } from "./command-line.ts";
import type { Contender, Cost } from "./contest.ts";
import { peakMemoryOf } from "./peak-memory.ts";

/** Commands that fail are no contenders: any exit code but 0 ends the benchmark. */
export function commandContender(
  name: string,
  command: Command,
  around: Pick<Contender, "before" | "after"> = {},
): Contender {
  return {
    name,
    ...around,
    run: () => runCommand(command),
    peakMemory: () => peakMemoryOf(command),
  };
}

/** The answer is read through a pipe, as a runtime does: who writes it to /dev/null has another way to write. */
export async function runCommand({ command, environment = {}, stdin }: Command): Promise<Cost> {
  const child = Bun.spawn([...command], {
    env: { ...environment },
    stdin: stdin === undefined ? "ignore" : new TextEncoder().encode(stdin),
    stdout: "pipe",
    stderr: "ignore",
  });
  const [code, answer] = await Promise.all([child.exited, new Response(child.stdout).text()]);
  if (code !== 0) throw new Error(`Cannot measure "${command.join(" ")}": it ended with exit code ${code}: ${answer}`);
  return { cpuMilliseconds: Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1000 };
}
