import { counted } from "../../counted.ts";
import { orchestratorMapping } from "../../datastore/kube/orchestrator-mapping.ts";
import { openKubeStore } from "../../datastore/kube/store.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { ADOPT_COMMAND, type ComparedCluster, compareNodes } from "../../ipam/cluster-identity.ts";
import { compareCluster, recordCluster } from "../../ipam/confirm-cluster.ts";
import { liveObjects } from "../../kube/live-objects.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given } from "../main/command.ts";
import type { DatastoreAccess } from "../main/context.ts";
import { withDatastoreAndApi } from "./open.ts";

export function run(context: DatastoreAccess, given: Given): Promise<ExitCode> {
  return withDatastoreAndApi(context, given, async (store, client, { kind }): Promise<ExitCode> => {
    const orchestrator = openKubeStore({ api: client, mappings: orchestratorMapping(), close: async () => {} });
    const { readClusterUid } = liveObjects(client);
    const compared = await compareCluster({ store, orchestrator, hasNodeRecords: kind === "etcd", readClusterUid });
    const { recorded, uid } = compared;
    context.stdout(textOf(compared));
    if (uid === undefined)
      throw new PluginError("config-invalid", "Cannot identify the cluster: it has no namespace kube-system");
    if (recorded === uid) {
      context.stdout("The datastore belongs to this cluster already\n");
      return EXIT_OK;
    }
    if (!given.switches.has("yes")) {
      context.stderr(`Nothing was changed. To confirm it: ${ADOPT_COMMAND} --yes\n`);
      return EXIT_FAILED;
    }
    if (!(await recordCluster(store, uid))) {
      throw new PluginError(
        "try-again-later",
        "Cannot record the cluster: ClusterInformation is missing, or has just changed",
        {
          details: `run the command again; "${identity.adminTool} datastore init" initializes a new datastore`,
        },
      );
    }
    context.stdout("The datastore belongs to this cluster from now on\n");
    return EXIT_OK;
  });
}

function textOf({ recorded, uid, records, nodes }: ComparedCluster): string {
  const { proven, named } = compareNodes({ records, nodes });
  const both = `${counted(proven.length, "node")} in both`;
  const uncertain = named.length === 0 ? "" : `, ${counted(named.length, "node")} with nothing but the name in common`;
  return [
    `The datastore is of cluster: ${recorded ?? "none yet"}`,
    `This cluster is:             ${uid ?? "unknown"}`,
    `Nodes: ${records.length} in the datastore, ${nodes.length} in the cluster, ${both}${uncertain}`,
    "",
  ].join("\n");
}
