import { identity } from "../../identity.ts";
import { loadOnce } from "../../load-once.ts";
import { FIRST_WITH_EVERYTHING } from "../../release/supported-servers.ts";
import { CLUSTER_OPTIONS } from "../cluster/options.ts";
import type { Command } from "../main/command.ts";
import { FILE_OPTION } from "../manifest/options.ts";
import { NETWORK_OPTIONS } from "./options.ts";
import { TIMEOUT_OPTION } from "./timeout.ts";

export const installCommand: Command = {
  kind: "command",
  name: "install",
  summary: `Install ${identity.title} in the cluster, or change what is installed`,
  description: [
    "Applies the custom resource definitions, the operator and an Installation, which the operator then carries out. The Installation is that",
    "of -f, or what the options say: without any, a default network. Running it again changes only what is different; options then",
    "change only what they name in the Installation that exists, and none of them leave it as it is.",
    "Refuses a cluster that has another network already, or this one from a manifest. With --wait it returns when everything runs, and",
    "prints each step of a component. With -o yaml or json, or with --dry-run, it prints the objects and applies nothing. It then asks no",
    `cluster: the definitions are those for an API server of ${FIRST_WITH_EVERYTHING.replace(/\.0$/, "")} or later.`,
  ].join("\n"),
  options: [
    { ...FILE_OPTION, summary: "File with the Installation (and the one named overlay), or - for standard input" },
    ...NETWORK_OPTIONS,
    { name: "operator-image", value: "IMAGE", summary: "Image of the operator (default: that of the Installation)" },
    {
      name: "dry-run",
      value: "WHERE",
      oneOf: ["client"],
      valueIfBare: "client",
      summary: "Print the objects, and apply nothing",
    },
    {
      name: "output",
      letter: "o",
      value: "FORMAT",
      oneOf: ["text", "yaml", "json"],
      summary: "yaml or json: print the objects in this format, and apply nothing",
    },
    { name: "wait", summary: "Wait until the network runs on all nodes" },
    TIMEOUT_OPTION,
    ...CLUSTER_OPTIONS,
  ],
  examples: [
    { command: "install --wait", does: "Install a default network and wait until it runs" },
    {
      command: "install --pod-cidr 10.244.0.0/16 --pod-cidr fd00:244::/56 --encapsulation VXLAN",
      does: "Install a dual-stack network with tunnels",
    },
    { command: "install -f installation.yaml", does: "Install or change what the Installation says" },
    { command: "install --dry-run > objects.yaml", does: "Write the objects to a file instead" },
  ],
  load: loadOnce(() => import("./install.ts")),
};

export const uninstallCommand: Command = {
  kind: "command",
  name: "uninstall",
  summary: `Remove ${identity.title} from the cluster`,
  description: [
    "Deletes the Installation, waits until the operator has removed everything from the cluster and its nodes, and deletes the operator.",
    "Pools, addresses and policies are kept, so that the network can be installed again; --crds deletes them too.",
    "Refuses as long as pods use the network: they keep their interfaces, but nothing serves them any more. --force does it nevertheless.",
  ].join("\n"),
  options: [
    { name: "force", summary: "Uninstall although pods use the network" },
    {
      name: "crds",
      summary: "Also delete the custom resource definitions, and with them all pools, addresses and policies",
    },
    { name: "all", summary: "The same as --crds" },
    {
      name: "skip-nodes",
      summary: "Do not wait for nodes that cannot be cleaned up, for example because they are gone",
    },
    TIMEOUT_OPTION,
    ...CLUSTER_OPTIONS,
  ],
  examples: [
    { command: "uninstall", does: "Remove the network, and keep its pools and policies" },
    { command: "uninstall --force --crds", does: "Remove everything, whatever uses it" },
  ],
  load: loadOnce(() => import("./uninstall.ts")),
};
