/**
 * Keeps a cluster until it is told to end (SIGTERM) or killed, or until nobody can find it any more because dist/cluster was removed. Its arguments
 * are the datastore and the number of nodes. The private hosts end with it.
 */
import { identity } from "../../src/identity.ts";
import { openOutput } from "../demo/output.ts";
import { writeCommands } from "./commands.ts";
import { type ClusterPlan, openCluster } from "./environment.ts";
import { isRecorded, type KeptCluster, knownProcess, recordCluster } from "./state.ts";

const LOOK_MILLISECONDS = 1_000;

const [, , store, nodes] = process.argv;
process.exit(await keep({ store: store === "etcd" ? "etcd" : "kubernetes", nodes: Number(nodes) }));

async function keep(plan: ClusterPlan): Promise<number> {
  const starting: KeptCluster = {
    keeper: knownProcess(process.pid),
    isReady: false,
    store: plan.store,
    nodeCount: plan.nodes,
    nodes: [],
    image: "",
  };
  recordCluster(starting);
  const output = openOutput(new AbortController().signal);
  output.title(`${identity.title} on a cluster that is kept, with the datastore "${plan.store}"`);
  await using cluster = await openCluster(output, plan);
  writeCommands(cluster);
  recordCluster({
    ...starting,
    isReady: true,
    nodes: cluster.nodes.map(({ name }) => name),
    image: cluster.cluster.image.archive,
  });
  let isWanted = true;
  process.on("SIGTERM", () => {
    isWanted = false;
  });
  while (isWanted && isRecorded(starting)) await Bun.sleep(LOOK_MILLISECONDS);
  return 0;
}
