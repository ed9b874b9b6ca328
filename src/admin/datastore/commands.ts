import { loadOnce } from "../../load-once.ts";
import type { Command } from "../main/command.ts";

export const datastoreCheck: Command = {
  kind: "command",
  name: "check",
  summary: "Check the connection to the datastore and report the stage that fails",
  description: [
    "Stages for etcd: settings, files, resolve, connect, TLS, authenticate, request, ready.",
    "Stages for other datastores: settings, files, open, read, ready. The last stage checks that it is initialized.",
    "The exit code is 1 if a stage fails.",
  ].join("\n"),
  needsDatastore: true,
  versionCheck: "none",
  examples: [
    { command: "datastore check", does: "Check the configured datastore" },
    {
      command: "datastore check --etcd-endpoints https://10.0.0.1:2379 -o json",
      does: "Check another etcd, with JSON output for a script",
    },
  ],
  load: loadOnce(() => import("./check.ts")),
};

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
  load: loadOnce(() => import("./init.ts")),
};

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
  load: loadOnce(() => import("./adopt-cluster.ts")),
};
