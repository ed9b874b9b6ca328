import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import type { Command } from "../main/command.ts";

/** Options of the peer's command, so that the refusal comes instead of a message about an option. */
const VALUES = [
  "ip",
  "ip6",
  "as",
  "name",
  "ip-autodetection-method",
  "ip6-autodetection-method",
  "log-dir",
  "node-image",
  "backend",
  "config",
  "node-config",
  "felix-config",
];
const SWITCHES = ["no-default-ippools", "dryrun", "init-system", "disable-docker-networking"];

export const nodeRun: Command = {
  kind: "command",
  name: "run",
  summary: "Not supported: the node agent is started by systemd or by the cluster",
  description: [
    "The node agent is not started in a container by this tool. On a host without a cluster its service starts it, in a cluster",
    `its DaemonSet ("${identity.adminTool} install"). Its settings are in NodeAgentConfiguration, BGPConfiguration and the Node.`,
  ].join("\n"),
  options: [
    ...VALUES.map((name) => ({ name, value: "VALUE", summary: "Not supported" })),
    ...SWITCHES.map((name) => ({ name, summary: "Not supported" })),
  ],
  examples: [{ command: "node run", does: "Says what to do instead" }],
  async run() {
    throw new PluginError(
      "field-unsupported",
      `Cannot start the node agent: "${identity.adminTool} node run" is not supported`,
      {
        details: `use "systemctl enable --now ${identity.nodeAgent}" on a host, or "${identity.adminTool} install" in a cluster; "${identity.adminTool} node register" sets the addresses of the node`,
      },
    );
  },
};
