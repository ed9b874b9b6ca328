/**
 * Runs the demo of a cluster in a process of its own, and removes what that leaves:
 *
 *   make demo ── stdin pipe ──> worker.process.ts ──> private hosts, control plane
 *
 * On Ctrl-C the worker is killed. If this process is killed, the worker notices by its stdin, and ends as well. Whichever
 * way the worker ends, the kernel ends its hosts, and whoever is left removes files and cgroups.
 */
import { join } from "node:path";
import type { InstalledStore } from "../../../test/support/operator-install.ts";
import { removeLeftovers } from "../../cluster/leftovers.ts";

const EXIT_INTERRUPTED = 130;

/** The steps of the demo, or the console with live traffic until Ctrl-C. */
export type ClusterShow = "steps" | "console";

export async function superviseClusterDemo(store: InstalledStore, show: ClusterShow): Promise<number> {
  const worker = Bun.spawn([process.execPath, join(import.meta.dir, "worker.process.ts"), store, show], {
    stdin: "pipe",
    stdout: "inherit",
    stderr: "inherit",
    // A terminal sends Ctrl-C to a whole process group.
    detached: true,
  });
  let isInterrupted = false;
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(name, () => {
      isInterrupted = true;
      worker.kill("SIGKILL");
    });
  }
  const code = await worker.exited;
  await removeLeftovers();
  if (!isInterrupted) return worker.signalCode === null ? code : 1;
  console.log("\nInterrupted; the cluster and everything in it were removed");
  return EXIT_INTERRUPTED;
}
