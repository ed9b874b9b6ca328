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
import { type KeptCluster, LOG, recordNoCluster, runningCluster, TEMPORARY, whileLocked } from "./state.ts";
import { stopCluster } from "./stop.ts";

const EXIT_INTERRUPTED = 130;
const LOOK_MILLISECONDS = 200;

interface Launched {
  readonly child: Bun.Subprocess;
  readonly isInterrupted: () => boolean;
}

/** The exit code, or the cluster that runs already. */
export async function startCluster(plan: ClusterPlan): Promise<number | KeptCluster> {
  const found = await whileLocked(async () => runningCluster() ?? (await launch(plan)));
  return "child" in found ? untilReady(found) : found;
}

/** Waits until it is recorded: from then on others find it. */
async function launch({ store, nodes }: ClusterPlan): Promise<Launched> {
  // What a killed one left.
  await stopCluster();
  recordNoCluster();
  mkdirSync(TEMPORARY, { mode: 0o700 });
  const log = openSync(LOG, "a", 0o600);
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "keeper.process.ts"), store, String(nodes)], {
    stdin: "ignore",
    stdout: log,
    stderr: log,
    // It outlives the terminal.
    detached: true,
    env: { ...process.env, TMPDIR: TEMPORARY },
  });
  closeSync(log);
  let wasInterrupted = false;
  const isInterrupted = () => wasInterrupted;
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(name, () => {
      wasInterrupted = true;
    });
  }
  while (!isInterrupted() && runs(child) && runningCluster() === undefined) await Bun.sleep(LOOK_MILLISECONDS);
  return { child, isInterrupted };
}

function runs({ exitCode, signalCode }: Bun.Subprocess): boolean {
  return exitCode === null && signalCode === null;
}

async function untilReady({ child, isInterrupted }: Launched): Promise<number> {
  const started = performance.now();
  let shown = 0;
  const showLog = () => {
    // `make cluster-down` in another shell removes it.
    if (!existsSync(LOG)) return;
    const text = readFileSync(LOG);
    process.stdout.write(text.subarray(shown));
    shown = text.length;
  };
  while (!isInterrupted() && runs(child) && runningCluster()?.isReady !== true) {
    showLog();
    await Bun.sleep(LOOK_MILLISECONDS);
  }
  if (runningCluster()?.isReady === true && runs(child) && !isInterrupted()) {
    showLog();
    const seconds = ((performance.now() - started) / 1000).toFixed(0);
    console.log(`\nThe cluster runs (${seconds} s). ${howToUse()}`);
    child.unref();
    return 0;
  }
  child.kill("SIGKILL");
  await child.exited;
  showLog();
  // Another may have been started after `make cluster-down` in another shell.
  await whileLocked(async () => runningCluster() ?? (await stopCluster()));
  console.error(
    isInterrupted() ? "\nInterrupted; the cluster was removed" : "\nThe cluster did not start; it was removed",
  );
  return isInterrupted() ? EXIT_INTERRUPTED : 1;
}
