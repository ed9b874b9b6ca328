import { counted } from "../../counted.ts";
import { orchestratorMapping } from "../../datastore/kube/orchestrator-mapping.ts";
import { openKubeStore } from "../../datastore/kube/store.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { ADOPT_COMMAND, type ComparedCluster, compareNodes } from "../../ipam/cluster-identity.ts";
import { compareCluster, recordCluster } from "../../ipam/confirm-cluster.ts";
import { liveObjects } from "../../kube/live-objects.ts";
import { type Command, EXIT_FAILED, EXIT_OK, type ExitCode } from "../main/command.ts";
import { withDatastoreAndApi } from "./open.ts";

export const datastoreAdoptCluster: Command = {
  kind: "command",
  name: "adopt-cluster",
  summary: "Confirm that the datastore belongs to the cluster of the kubeconfig",
  description: [
    "ClusterInformation records to which cluster the datastore belongs: the UID of the namespace kube-system. The controllers,",
    "ipam gc --cluster, the node agents and upgrade refuse to compare its records with another cluster, whose pods and nodes they",
    "would miss: they would release the addresses of pods that run. The controllers record it by themselves if the nodes of",
    "both coincide: on etcd, if they are the same machines or have an address in common. After the datastore was moved to",
    "another cluster, or the cluster was built again, use this command.",
    "Shows both clusters and how many nodes coincide. Writes nothing without --yes.",
  ].join("\n"),
  options: [
    { name: "yes", summary: "Do it: addresses of pods that this cluster does not have are released from then on" },
  ],
  needsDatastore: true,
  examples: [
    {
      command: "datastore adopt-cluster --kubeconfig /etc/kubernetes/admin.conf",
      does: "Show what would be confirmed",
    },
    { command: "datastore adopt-cluster --kubeconfig /etc/kubernetes/admin.conf --yes", does: "Confirm it" },
  ],
  run: (context, given) =>
    withDatastoreAndApi(context, given, async (store, client, { kind }): Promise<ExitCode> => {
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
    }),
};

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
