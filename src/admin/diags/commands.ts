import { identity } from "../../identity.ts";
import { loadOnce } from "../../load-once.ts";
import { CLUSTER_OPTIONS } from "../cluster/options.ts";
import type { Command } from "../main/command.ts";
import { ARCHIVE_OPTION, FLOWS_OPTION, USUAL_LOGS, USUAL_PARALLELISM } from "./options.ts";

export const nodeDiags: Command = {
  kind: "command",
  name: "diags",
  summary: "Collect what is needed to analyse a problem of this host in one archive",
  description: [
    "Runs on the node, as root. Collects the time, the name and the kernel of the host, its addresses, routes, neighbours, sockets and",
    "nftables rules, what BIRD and the node agent report, the journal of the node agent, the network configs, the configuration of",
    "this tool, and the logs (*.log). Of flows what is missing in them, and the size of their history; the flows themselves only with",
    "--flows. Programs that the host does not have, and all other files of these directories, are left out and named. Secrets are",
    "replaced by [redacted]. The archive is readable by its owner only.",
  ].join("\n"),
  options: [
    { name: "log-dir", value: "DIRECTORY", summary: `Directory with the logs (default: ${identity.logDirectory})` },
    FLOWS_OPTION,
    ARCHIVE_OPTION,
  ],
  versionCheck: "none",
  examples: [
    { command: "node diags", does: "Write diags-TIME.tar.gz" },
    { command: "node diags --archive /tmp/node-1.tar.gz", does: "Write it elsewhere" },
  ],
  load: loadOnce(() => import("./node-diags.ts")),
};

export const clusterDiags: Command = {
  kind: "command",
  name: "diags",
  summary: "Collect what is needed to analyse a problem of the cluster in one archive",
  description: [
    "Collects the nodes, the product's resources (pools, policies …) and those of its operator, its workloads, pods and events, and the",
    "logs of its pods: of each workload at most --max-logs pods, those on nodes of --focus-nodes first, then those that are not ready.",
    "Of flows what is missing in those of each node, and the flows themselves only with --flows. Secrets are not read, and whatever",
    "looks like one is replaced by [redacted]. What the account may not read is named.",
    "node diags collects more about one host, and runs there.",
  ].join("\n"),
  options: [
    { name: "since", value: "DURATION", summary: "Only logs that are newer, such as 5s, 2m or 3h (default: all)" },
    {
      name: "max-logs",
      value: "NUMBER",
      summary: `Pods of each workload whose logs are collected (default: ${USUAL_LOGS})`,
    },
    {
      name: "max-parallelism",
      value: "NUMBER",
      summary: `Requests at the same time (default: ${USUAL_PARALLELISM})`,
    },
    { name: "focus-nodes", value: "NODES", summary: "Nodes whose pods are preferred, separated by commas" },
    {
      name: "skip-temp-dir-cleanup",
      summary: "Accepted for scripts of other tools: there is no temporary directory",
    },
    FLOWS_OPTION,
    ARCHIVE_OPTION,
    ...CLUSTER_OPTIONS,
  ],
  versionCheck: "none",
  examples: [
    { command: "cluster diags", does: "Write diags-TIME.tar.gz" },
    {
      command: "cluster diags --since 1h --focus-nodes worker-3",
      does: "Logs of the last hour, those of a node first",
    },
  ],
  load: loadOnce(() => import("./cluster-diags.ts")),
};
