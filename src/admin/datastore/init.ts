import { DatastoreLocked } from "../../ipam/cluster.ts";
import { type Initialization, initialize } from "../../ipam/initialize.ts";
import { CLUSTER_INFORMATION_KEY } from "../../model/keys.ts";
import { type Command, EXIT_OK, wantsJson } from "../main/command.ts";
import { explained } from "../resources/unreadable-remedy.ts";
import { paintStderr } from "../terminal/paint.ts";
import { containersOfNetwork, runningHere, withNewDatastore } from "./open.ts";

export const datastoreInit: Command = {
  kind: "command",
  name: "init",
  summary: "Initialize an empty datastore",
  description: [
    "Creates the ClusterInformation resource, which plugins and agents require before they use a datastore.",
    "Running it again changes nothing. Fails if the datastore is locked: an upgrade or a migration is in progress.",
  ].join("\n"),
  needsDatastore: true,
  examples: [
    { command: "datastore init --etcd-endpoints http://10.0.0.1:2379", does: "Initialize a new etcd" },
    { command: "datastore init --datastore-type embedded", does: "Initialize an embedded datastore on a single host" },
  ],
  async run(context, given) {
    const result = await withNewDatastore(context, given, async (store) => {
      try {
        return await initialize(store, context);
      } catch (failure) {
        throw explained(CLUSTER_INFORMATION_KEY, failure);
      }
    });
    if (result.state === "locked") throw new DatastoreLocked(result.lockedBy ?? "others");
    const containers = result.state === "initialized" ? await containersOfNetwork(context) : 0;
    if (containers > 0) {
      const lost = "that it does not know: if the former datastore was lost, put its copy back instead";
      context.stderr(`${paintStderr(context).yellow("note:")} ${runningHere(containers)} ${lost}\n`);
    }
    context.stdout(wantsJson(given) ? `${JSON.stringify(result)}\n` : textOf(result));
    return EXIT_OK;
  },
};

function textOf({ state, clusterGUID }: Initialization): string {
  const cluster = `cluster ${clusterGUID || "without a GUID"}`;
  return state === "initialized"
    ? `Initialized the datastore (${cluster})\n`
    : `The datastore is already initialized (${cluster})\n`;
}
