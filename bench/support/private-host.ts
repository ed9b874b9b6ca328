/**
 * Runs a benchmark on a private host. Entering a namespace takes milliseconds,
 * so the whole benchmark runs inside and starts its candidates directly:
 *
 *   outside:  build what needs the network, create the host and its servers
 *   inside:   measure, in the same file, which runs again
 */
import { chdir } from "node:process";
import { type Host, hostProblem, openHost } from "../../test/support/host.ts";

export interface HostedBenchmark<Prepared> {
  /** Why it cannot run here. */
  readonly problem?: string | undefined;
  /** Outside: builds and starts what the measurement needs; its result is passed to `measure`. What is given to `undo` ends before the host. */
  prepare(host: Host, undo: AsyncDisposableStack): Promise<Prepared>;
  /** Inside: gets the result of `prepare`, passed as JSON. */
  measure(prepared: Prepared): Promise<void>;
  /** Outside, when the host is gone: a measurement that needs other hosts. */
  afterwards?(): Promise<void>;
}

const HANDED_OVER = "VT_BENCHMARK";

export async function onPrivateHost<Prepared>(file: string, benchmark: HostedBenchmark<Prepared>): Promise<void> {
  const handedOver = process.env[HANDED_OVER];
  if (handedOver !== undefined) {
    chdir(import.meta.dir);
    await benchmark.measure(JSON.parse(handedOver));
    return;
  }
  const problem = benchmark.problem ?? hostProblem();
  if (problem !== undefined) {
    console.log(`skipped: ${problem}`);
    return;
  }
  process.exitCode = await measureInside(file, benchmark);
  if (process.exitCode === 0) await benchmark.afterwards?.();
}

/** Returns the exit code of the measurement. */
async function measureInside<Prepared>(file: string, { prepare }: HostedBenchmark<Prepared>): Promise<number> {
  await using host = await openHost();
  await using undo = new AsyncDisposableStack();
  const environment = { ...process.env, [HANDED_OVER]: JSON.stringify(await prepare(host, undo)) };
  const inside = Bun.spawn([...host.enter, process.execPath, file], {
    env: environment,
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
  });
  return await inside.exited;
}
