/** Runs the processes of a turn and adds up their CPU time, for operations that consist of several processes. */
import type { Finished, RunOptions } from "../../test/support/host.ts";
import type { Meter } from "./comparison.ts";
import type { Served } from "./node-agent.ts";

export interface CountedProcesses {
  run(command: readonly string[], options: RunOptions): Promise<Finished>;
  /** Measures the processes, and the agent that serves them if there is one. */
  readonly meter: Meter;
}

export function countProcesses({ agent }: Served): CountedProcesses {
  let used = 0;
  return {
    async run(command, { stdin = "", environment }) {
      const child = Bun.spawn([...command], {
        env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ...environment, ...agent?.environment },
        stdin: new TextEncoder().encode(stdin),
        stdout: "pipe",
        stderr: "pipe",
      });
      const [stdout, stderr, code] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
        child.exited,
      ]);
      used += Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1000;
      return { code, stdout, stderr };
    },
    async meter() {
      const readAgent = await agent?.meter();
      const before = used;
      return async () => {
        const ofProcesses = used - before;
        return { cpuMilliseconds: ofProcesses + ((await readAgent?.())?.cpuMilliseconds ?? 0) };
      };
    },
  };
}
