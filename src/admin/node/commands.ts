import { identity } from "../../identity.ts";
import { loadOnce } from "../../load-once.ts";
import { NODE_NAME_OPTION } from "../host/options.ts";
import type { Command } from "../main/command.ts";

export const nodeStatus: Command = {
  kind: "command",
  name: "status",
  summary: "Show the BGP sessions and the routes between nodes of this host",
  description: [
    "Runs on the node, as root. Asks BIRD for its sessions (a session that works is up, with the info Established), and counts",
    "the routes in the kernel by who made them and by their way: BIRD those it learned by BGP, the node agent those through",
    "tunnels and all others. If BIRD does not run, the reason is shown: a node without peers needs none.",
    "Policies that are not enforced as they are written are listed with the reason: they deny more than they say.",
    "What the node agent knows of the datastore may be old: the time since it was last confirmed is shown.",
    "Addresses, floating IPs and source prefixes that only annotations of a pod claim have no effect, and are listed.",
    "The exit code is 1 if the node agent does not run, or if BIRD should run and does not.",
  ].join("\n"),
  versionCheck: "none",
  examples: [
    { command: "node status", does: "Are the sessions of this node up?" },
    { command: "node status -o json", does: "As JSON for a script" },
  ],
  load: loadOnce(() => import("./status.ts")),
};

export const nodeRegister: Command = {
  kind: "command",
  name: "register",
  summary: "Create or update the Node resource of this host",
  description: [
    "The name is the one that the plugins use: that of the installed network config or its node name file, otherwise the",
    "host name in lower case. Its addresses are found by the methods that ipv4AddressDetection and ipv6AddressDetection of",
    "NodeAgentConfiguration name; the usual one, first-found, prefers links with a default route.",
    "Labels and other fields of an existing Node are kept.",
    "The node agent does the same for its host, at its start and every few minutes: on the Kubernetes API it checks that the Node is",
    "this machine's, and adds only its release.",
    "The identity of this machine is recorded: plugins refuse to work under a node name that another machine has registered.",
    "On etcd, the name of this host in Kubernetes is recorded, if the network config gives access to the Kubernetes API and",
    "the API has a Node of that name: labels are then copied from it, and this Node is deleted with it (see docs/controllers.md).",
    "The agent does not create the Node while that API cannot be reached or has no such Node, for example because it was deleted:",
    "without the name, nobody would delete it.",
  ].join("\n"),
  options: [
    { name: "name", value: "NAME", summary: "Register under this name" },
    { name: "force", summary: "Replace the machine that has registered the name" },
  ],
  needsDatastore: true,
  versionCheck: "none",
  examples: [
    { command: "node register", does: "Register this host, so that it can be labelled and selected by pools" },
  ],
  load: loadOnce(() => import("./register.ts")),
};

export const nodeCheck: Command = {
  kind: "command",
  name: "check",
  summary: "Check whether this host forwards the packets of pods",
  description: [
    "Runs on the node, as root. Checks IP forwarding, looks for firewall chains that drop forwarded packets, and checks whether",
    "the product's own tables (NAT, floating IPs, spoofing, host ports, policy) and the reverse path filters of pods are in place.",
    "A node agent that no longer runs is a failure, and so is a policy that selects containers of this host, or a profile that closes",
    "them, while nothing enforces it; the policies are read for that only if this host has no policy table and its network config does",
    "not require one. Rules that an agent left behind do not follow changes, which is a warning.",
    "Containers that run here although the datastore does not know them are a failure too: it may have lost its records.",
    "Reports each problem with the commands that fix it; changes nothing. The exit code is 1 if a check has failed.",
  ].join("\n"),
  needsDatastore: true,
  versionCheck: "none",
  examples: [
    { command: "node check", does: "Check this host" },
    { command: "node check -o json", does: "Check it in a script" },
  ],
  load: loadOnce(() => import("./check.ts")),
};

export const nodeChecksystem: Command = {
  kind: "command",
  name: "checksystem",
  summary: "Check whether the kernel of this host has what the product needs",
  description: [
    "Runs on the host, as root. Tries each feature in a network namespace of its own, which is gone afterwards: links, tunnels,",
    "tables and sets of nftables, connection tracking, and limits of bandwidth. No list of modules is compared: what is built",
    "into the kernel or loaded on demand counts.",
    "A feature that only some settings need is a warning if it is missing. The exit code is 1 if one is missing that is always needed.",
  ].join("\n"),
  options: [
    {
      name: "kernel-config",
      value: "FILE",
      summary: "Accepted for scripts of other tools, and not read: the kernel itself is asked",
    },
  ],
  versionCheck: "none",
  examples: [
    { command: "node checksystem", does: "Can this host be a node?" },
    { command: "node checksystem -o json", does: "As JSON for a script" },
  ],
  load: loadOnce(() => import("./checksystem.ts")),
};

export const nodeRestore: Command = {
  kind: "command",
  name: "restore",
  summary: "Write the nftables tables that all pods of this host share again",
  description: [
    "Runs on the node, as root. Compares the tables for outgoing NAT, for floating IPs, against spoofed addresses and for host",
    "ports with the pools, with the endpoints of this node and with what this host recorded of its containers' host ports, and",
    'writes them if they are missing or outdated: after "nft flush ruleset", or after a pool was changed.',
    "A node agent that runs does this by itself within a second; without one, every ADD does it for outgoing NAT and against",
    "spoofed addresses.",
    "A host port that another container got meanwhile stays there, with a warning. Host ports of a container that a former release",
    "connected come back only with an ADD of that container (podman network reload).",
  ].join("\n"),
  options: [NODE_NAME_OPTION],
  needsDatastore: true,
  versionCheck: "none",
  examples: [{ command: "node restore", does: "Write the tables again after another program flushed them" }],
  load: loadOnce(() => import("./restore.ts")),
};

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
  load: loadOnce(() => import("./run-refusal.ts")),
};
