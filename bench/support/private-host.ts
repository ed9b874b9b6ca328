/**
 * A benchmark on a private host. Entering a namespace costs milliseconds, so
 * the whole benchmark runs inside and starts its contenders directly:
 *
 *   outside:  build what needs the network, make the host and its servers
 *   inside:   measure, in the same file run once more
 */
import { chdir } from "node:process";
import { type Host, hostProblem, openHost } from "../../test/support/host.ts";

export interface HostedBenchmark<Prepared> {
  /** Outside: builds and starts what the measuring needs; what it returns is handed over. */
  prepare(host: Host): Promise<Prepared>;
  /** Inside: gets what `prepare` returned, after a trip through JSON. */
  measure(prepared: Prepared): Promise<void>;
}

const HANDED_OVER = "VT_BENCHMARK";

export async function onPrivateHost<Prepared>(
  file: string,
  { prepare, measure }: HostedBenchmark<Prepared>,
): Promise<void> {
  const handedOver = process.env[HANDED_OVER];
  if (handedOver !== undefined) {
    chdir(import.meta.dir);
    await measure(JSON.parse(handedOver));
    return;
  }
  const problem = hostProblem();
  if (problem !== undefined) {
    console.log(`left out: ${problem}`);
    return;
  }
  await using host = await openHost();
  const environment = { ...process.env, [HANDED_OVER]: JSON.stringify(await prepare(host)) };
  const inside = Bun.spawn([...host.enter, process.execPath, file], {
    env: environment,
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
  });
  process.exitCode = await inside.exited;
}
