/**
 * Starts the process that keeps a cluster, and prints what it prints until the cluster can be used:
 *
 *   make cluster ── starts, in a session of its own ──> keeper.process.ts ── stdin pipes ──> private hosts
 *        └── reads dist/cluster/log, state.json
 */
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { howToUse } from "./commands.ts";
import type { ClusterPlan } from "./environment.ts";
import { FOLDER, LOG, runningCluster, TEMPORARY } from "./state.ts";
import { stopCluster } from "./stop.ts";

const EXIT_INTERRUPTED = 130;
const LOOK_MILLISECONDS = 200;

export async function startCluster({ store, nodes }: ClusterPlan): Promise<number> {
  // What a killed one left.
  await stopCluster();
  mkdirSync(FOLDER, { recursive: true });
  mkdirSync(TEMPORARY, { mode: 0o700 });
  const started = performance.now();
  const log = openSync(LOG, "a");
  const keeper = Bun.spawn([process.execPath, join(import.meta.dir, "keeper.process.ts"), store, String(nodes)], {
    stdin: "ignore",
    stdout: log,
    stderr: log,
    // It outlives the terminal.
    detached: true,
    env: { ...process.env, TMPDIR: TEMPORARY },
  });
  closeSync(log);
  let isInterrupted = false;
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(name, () => {
      isInterrupted = true;
    });
  }
  let shown = 0;
  const showLog = () => {
    // `make cluster-down` in another shell removes it.
    if (!existsSync(LOG)) return;
    const text = readFileSync(LOG);
    process.stdout.write(text.subarray(shown));
    shown = text.length;
  };
  while (
    !isInterrupted &&
    keeper.exitCode === null &&
    keeper.signalCode === null &&
    runningCluster()?.isReady !== true
  ) {
    showLog();
    await Bun.sleep(LOOK_MILLISECONDS);
  }
  if (runningCluster()?.isReady === true && !isInterrupted) {
    showLog();
    const seconds = ((performance.now() - started) / 1000).toFixed(0);
    console.log(`\nThe cluster runs (${seconds} s). ${howToUse()}`);
    keeper.unref();
    return 0;
  }
  keeper.kill("SIGKILL");
  await keeper.exited;
  showLog();
  await stopCluster();
  console.error(
    isInterrupted ? "\nInterrupted; the cluster was removed" : "\nThe cluster did not start; it was removed",
  );
  return isInterrupted ? EXIT_INTERRUPTED : 1;
}
