/**
 * `make cluster` and `make cluster-down`: a real Kubernetes with the network on private hosts, kept until it is removed.
 *   bun scripts/cluster.ts up --datastore kubernetes|etcd --nodes 2
 *   bun scripts/cluster.ts down
 * It outlives the shell that started it. There is one for each clone.
 */
import { parseArgs } from "node:util";
import { INSTALLED_STORES } from "../test/support/operator-install.ts";
import { howToUse } from "./cluster/commands.ts";
import { RefusedFolder } from "./cluster/folder.ts";
import { missingForCluster } from "./cluster/requirements.ts";
import { startCluster } from "./cluster/start.ts";
import { type KeptCluster, whileLocked } from "./cluster/state.ts";
import { stopCluster } from "./cluster/stop.ts";
import { updateCluster } from "./cluster/update.ts";
import { nodeCountNamed, storeNamed } from "./cluster/wanted.ts";

const EXIT_USAGE = 2;

const { values, positionals } = parseArgs({
  options: { datastore: { type: "string", default: "" }, nodes: { type: "string", default: "" } },
  allowPositionals: true,
});
process.exit(await (positionals[0] === "down" ? down() : up(values)).catch(refused));

function refused(failure: unknown): number {
  if (!(failure instanceof RefusedFolder)) throw failure;
  console.error(failure.message);
  return 1;
}

async function up(wanted: { readonly datastore: string; readonly nodes: string }): Promise<number> {
  const store = storeNamed(wanted.datastore, INSTALLED_STORES);
  const nodes = nodeCountNamed(wanted.nodes);
  if (store === undefined || nodes === undefined) return EXIT_USAGE;
  const missing = await missingForCluster("make cluster");
  if (missing.length > 0) {
    console.error(`The cluster cannot start: ${missing.join("; ")}`);
    return 1;
  }
  const running = await startCluster({ store, nodes });
  if (typeof running === "number") return running;
  const isOther =
    (wanted.datastore !== "" && store !== running.store) || (wanted.nodes !== "" && nodes !== running.nodeCount);
  if (running.isReady && !isOther) return again(running);
  console.error(
    isOther
      ? `Another cluster runs already: ${textOf(running)}; to replace it, run make cluster-down first`
      : "The cluster is being started by another make cluster; make cluster-down ends both",
  );
  return 1;
}

async function again(running: KeptCluster): Promise<number> {
  console.log(`The cluster runs already: ${textOf(running)}`);
  try {
    const isUpdated = await updateCluster(running);
    console.log(isUpdated ? "\nIt runs the programs of this build now." : "It runs the programs of this build.");
  } catch (failure) {
    console.error(failure instanceof Error ? failure.message : failure);
    console.error("The cluster does not run the programs of this build; make cluster-down removes it");
    return 1;
  }
  console.log(howToUse());
  return 0;
}

function textOf({ nodeCount, store }: KeptCluster): string {
  return `${nodeCount} nodes, datastore "${store}"`;
}

async function down(): Promise<number> {
  if (process.getuid?.() !== 0) {
    console.error("Only root may remove the cluster: sudo make cluster-down");
    return 1;
  }
  const texts = {
    "a running cluster": "The cluster was removed: no host, link, process or file of it is left",
    leftovers: "The cluster had ended already; what was left of it was removed",
    nothing: "There is no cluster of this clone",
  };
  console.log(texts[await whileLocked(stopCluster)]);
  return 0;
}
