import { DatastoreLocked } from "../../ipam/cluster.ts";
import { type Initialization, initialize } from "../../ipam/initialize.ts";
import { CLUSTER_INFORMATION_KEY } from "../../model/keys.ts";
import { EXIT_OK, type ExitCode, type Given, wantsJson } from "../main/command.ts";
import type { Clock, DatastoreAccess } from "../main/context.ts";
import { explained } from "../resources/unreadable-remedy.ts";
import { paintStderr } from "../terminal/paint.ts";
import { containersOfNetwork, runningHere, withNewDatastore } from "./open.ts";

export async function run(context: DatastoreAccess & Clock, given: Given): Promise<ExitCode> {
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
}

function textOf({ state, clusterGUID }: Initialization): string {
  const cluster = `cluster ${clusterGUID || "without a GUID"}`;
  return state === "initialized"
    ? `Initialized the datastore (${cluster})\n`
    : `The datastore is already initialized (${cluster})\n`;
}
