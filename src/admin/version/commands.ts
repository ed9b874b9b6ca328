import { loadOnce } from "../../load-once.ts";
import type { Command } from "../main/command.ts";

export const versionCommand: Command = {
  kind: "command",
  name: "version",
  summary: "Print the version of this tool and of the cluster",
  description: [
    "The version of the cluster is the one that the node agents of all nodes have; it is in the ClusterInformation resource. It rises when",
    "the agent of the last node is upgraded, and never falls. While nodes run different releases, those with the earlier one are named.",
    "If the datastore cannot be read, the version of the cluster is unknown, and the exit code is 0 nevertheless.",
  ].join("\n"),
  options: [
    { name: "client", summary: "Print only the version of this tool; do not open the datastore" },
    {
      name: "poll",
      value: "DURATION",
      summary: "Ask again after this time, such as 10s, and print what has changed, until Ctrl-C",
    },
  ],
  needsDatastore: true,
  versionCheck: "none",
  examples: [
    { command: "version", does: "Which versions are in use, and which node is behind?" },
    { command: "version --client", does: "Print the version of this tool alone" },
    { command: "version -o json", does: "Print both as JSON for a script" },
    { command: "version --poll 10s", does: "Follow an upgrade" },
  ],
  load: loadOnce(() => import("./version.ts")),
};
