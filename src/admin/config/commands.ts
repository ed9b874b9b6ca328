import { loadOnce } from "../../load-once.ts";
import type { Command } from "../main/command.ts";

export const configCheck: Command = {
  kind: "command",
  name: "check",
  summary: "Check network configuration files and report each problem with its line and column",
  description: [
    "FILE is a network configuration or a network configuration list (conflist); - reads standard input. Of a directory, the",
    "files that container runtimes read are checked; without FILE, those of the directory of this host (/etc/cni/net.d).",
    "The plugins of a list are checked together: their order, their capabilities, and the options of portmap, bandwidth",
    "and host-local. Then the config is compared with this host: the CNI versions that podman, containerd and CRI-O accept, the",
    "plugins in their plugin directories and in CNI_PATH, the files and the pools that it names. --skip-files leaves this out.",
    '"would fail" instead of "ok" is for a config that is valid, but that the runtimes of this host refuse or skip.',
    "The exit code is 1 if there is any error, and 0 if there are only warnings and notes.",
  ].join("\n"),
  operands: "[FILE…]",
  completes: "files",
  options: [
    { name: "effective", summary: "Also print the configuration with all defaults filled in" },
    { name: "skip-files", summary: "Do not look at this host: its files, plugins, container runtimes and datastore" },
  ],
  examples: [
    { command: "config check", does: "Check the network configs of this host" },
    { command: "config check /etc/cni/net.d/10-pods.conflist", does: "Check a file" },
    { command: "config check --effective - < pods.conf", does: "Show the effective configuration" },
    {
      command: "config check -o json --skip-files *.conflist",
      does: "Check files in a script, on another machine than the node",
    },
  ],
  load: loadOnce(() => import("./check.ts")),
};
