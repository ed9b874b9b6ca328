import { identity } from "../../identity.ts";
import { loadOnce } from "../../load-once.ts";
import { NODE_NAME_OPTION } from "../host/options.ts";
import type { Command } from "../main/command.ts";
import { DRY_RUN_OPTION } from "../resources/options.ts";
import { DEFAULT_GRACE, MAP_OPTION, USUAL_KEEP_FOR } from "./options.ts";

export const ipamShow: Command = {
  kind: "command",
  name: "show",
  summary: "Show the usage of IP pools, or the owner of an address",
  description: [
    "Unreadable records are reported on stderr, and the exit code is then 1.",
    "The addresses of an unreadable block count as neither used nor free, reserved addresses that are not in use as reserved.",
  ].join("\n"),
  options: [
    { name: "show-blocks", summary: "Also list the blocks of each pool with their node and usage" },
    MAP_OPTION,
    { name: "pool", value: "NAME", summary: "With --map: draw only this pool" },
    { name: "show-borrowed", summary: "List the addresses that nodes use from blocks of other nodes" },
    { name: "addresses", summary: "List all addresses in use or kept, with their pool, block, node, handle and pod" },
    { name: "show-configuration", summary: "Show the IPAM configuration instead of the pools" },
    { name: "ip", value: "ADDRESS", summary: "Show the owner of this address, its node and the time of assignment" },
  ],
  needsDatastore: true,
  examples: [
    { command: "ipam show", does: "Show the usage of all pools" },
    { command: "ipam show --show-blocks", does: "Also show the blocks of each node" },
    { command: "ipam show --map", does: "See how full the blocks of each pool are" },
    { command: "ipam show --map=node --pool blue", does: "See which node has which blocks of a pool" },
    { command: "ipam show --addresses -o json", does: "List all addresses in use, as JSON for a script" },
    { command: "ipam show --ip 10.0.0.5", does: "Show the owner of an address" },
  ],
  load: loadOnce(() => import("./show/show.ts")),
};

export const ipamExplain: Command = {
  kind: "command",
  name: "explain",
  summary:
    "Show why a workload has its addresses: which source chose the pool, which pools were passed over, which block gave it",
  description: [
    "The decision is made again as an ADD would make it now, with the annotations of the pod and its namespace, the network config",
    "of this host, the pools and the labels of the node. It is shown next to the addresses that the workload has; a difference is",
    "reported. Requests of the runtime (podman run --ip) are not recorded, and therefore not known.",
    "A pod that has no address yet is explained too, with the reason if it cannot get one.",
  ].join("\n"),
  operands: "NAMESPACE/POD | CONTAINER",
  options: [
    {
      name: "network-config",
      value: "FILE",
      summary: `Network config of the pod's node (default: the installed one that runs the plugin ${identity.product})`,
    },
  ],
  needsDatastore: true,
  examples: [
    { command: "ipam explain default/web-0", does: "Show why a pod has its addresses" },
    {
      command: "ipam explain 4f1a9c",
      does: "The same for a container that is not in a pod, by the beginning of its ID",
    },
    { command: "ipam explain default/web-0 -o json", does: "As JSON for a script" },
  ],
  load: loadOnce(() => import("./explain/explain.ts")),
};

export const ipamCheck: Command = {
  kind: "command",
  name: "check",
  summary: "Check the integrity of IPAM data: duplicate and leaked addresses, inconsistent records",
  description: [
    "Finds addresses that are used twice, outside all pools, or leaked (their endpoint is gone),",
    "endpoints whose address is not allocated, lists with addresses that are in no pool, inconsistent or overlapping blocks,",
    "handles that do not match their blocks, and affinities for missing blocks or other nodes' blocks.",
    "On a host whose node this machine has registered, also finds addresses of its containers that are gone (see ipam gc).",
    "Safe to run at any time: a second check confirms each finding, so operations in progress are not reported.",
    "A finding is unfinished if an operation stopped midway: no address is at risk, and the next operation completes it.",
    "--fix repairs records, merges overlapping blocks, allocates addresses that endpoints use to their containers, and",
    "releases leaked addresses. No address of an endpoint is released. If two workloads use one address, or one in use is",
    "outside all pools, the records do not show what is correct: the finding then says what to do, with the commands.",
    "Unreadable records are reported; what could depend on them is not judged, and --fix then changes nothing.",
    "The exit code is 1 if any problem remains.",
  ].join("\n"),
  options: [
    { name: "fix", summary: "Repair what was found, and say what to do about what needs a decision" },
    { name: "show-problem-ips", summary: "Also list each address that has a problem, with its owner" },
    { name: "show-all-ips", summary: "Also list each address in use, with its owner" },
    {
      name: "report",
      value: "FILE",
      summary: 'Write a report of all addresses and of those that are leaked, for "ipam release --from-report"',
    },
    { name: "no-grace", summary: "Report addresses without an endpoint at once, not after an hour" },
  ],
  needsDatastore: true,
  examples: [
    { command: "ipam check", does: "Check only" },
    { command: "ipam check --fix", does: "Check and repair" },
    { command: "ipam check --report leaks.json", does: "Write a report, for ipam release --from-report" },
    { command: "ipam check -o json", does: "Check, with JSON output for a script" },
  ],
  load: loadOnce(() => import("./check/check.ts")),
};

export const ipamGc: Command = {
  kind: "command",
  name: "gc",
  summary: "Release addresses of containers that no longer exist, on this host or in the cluster",
  description: [
    "Compares the addresses that are recorded for this host's node with the links of the host. An address is released, with",
    "its endpoint, if the host has no link and no route for it and it was assigned more than 5 minutes ago or before the host",
    "was booted. Empty blocks are given back, except one of each pool; those outside all pools are all given back.",
    "Addresses of other nodes are kept.",
    "With a datastore that several hosts share, the node must be registered by this machine (node register), and addresses",
    "that were assigned before that are kept: another machine may have used the name then. They are released if the",
    "Kubernetes API says that their pod does not exist, is on another node, was evicted, or has other addresses. The same",
    "holds for addresses of pods that another network plugin got from the IPAM plugin, if no process of the host has them.",
    "Run it on the host itself: in another network namespace the links of the host are not visible.",
    "",
    "With --cluster it compares all recorded addresses with the pods and nodes of Kubernetes, once, as the controllers do",
    "all the time, and can be run anywhere. An address looks leaked if its pod does not exist, is on another node, was evicted,",
    "or has other addresses. It is released, with all others of its container, if its node is gone. If the node exists, it is",
    "kept: only the host sees whether the container still runs, and its agent releases it. --dead-node names a node whose",
    "machine is off: its addresses are released, too, if they were assigned longer ago than the grace period. Just before that",
    "the pod and the node are read again, and an address that was assigned again is kept. Claims on blocks of nodes that are",
    "gone are released too, and empty blocks, except one of each pool and node; those outside all pools are all released.",
    "An address that is kept for a pod is not freed: its use on the node ends, and it waits for the pod.",
  ].join("\n"),
  options: [
    NODE_NAME_OPTION,
    { name: "dry-run", summary: "Show what would be released, with the reason, and change nothing" },
    {
      name: "before-registration",
      summary: "Also judge addresses that were assigned before this machine registered the node",
    },
    { name: "any-namespace", summary: "Run in a network namespace other than that of process 1" },
    { name: "cluster", summary: "Search the whole cluster, by the pods and nodes of Kubernetes" },
    {
      name: "grace",
      value: "DURATION",
      summary: `With --dead-node: keep addresses that were assigned more recently (default: ${DEFAULT_GRACE}, at least 1m)`,
    },
    {
      name: "dead-node",
      value: "NODE",
      repeats: true,
      summary: "With --cluster: also release leaked addresses of this node, which exists; no container of it must run",
    },
    {
      name: "yes",
      summary:
        "With --cluster: release them even if they are many (20 or more addresses, blocks, endpoints or nodes, and more than 20 % of all)",
    },
  ],
  needsDatastore: true,
  examples: [
    { command: "ipam gc --dry-run", does: "Show leaked addresses of this host" },
    { command: "ipam gc", does: "Release them" },
    { command: "ipam gc --cluster --dry-run", does: "Show leaked addresses of all nodes" },
  ],
  load: loadOnce(() => import("./gc/gc.ts")),
};

export const ipamRelease: Command = {
  kind: "command",
  name: "release",
  summary: "Release addresses that are no longer in use",
  description: [
    "An address that an endpoint names, or that of a tunnel of a node, is released only if --force is given; the agent of the",
    "node then takes another for its tunnel. The endpoint is deleted if all of its addresses",
    "are released, as with --handle; otherwise it stays, which is reported.",
    "A released address can be assigned to another workload.",
    "An address that is kept for a pod and waits for it is freed. If a container uses it, it is released only if --force is given,",
    "which ends that use: the address then waits for the pod. Only do that once the container certainly does not run any more,",
    "for example because the machine of a silent node is off: if it runs on, two containers have the address.",
    "--pod releases all that is kept for a pod.",
    "With both --ip and --handle, the address is released only if it belongs to the handle.",
    "Releasing a free address of a pool is not an error; an address in no pool and an unknown handle are.",
    "If the block or the handle of an address is unreadable, it is reported on stderr and not released; the others are.",
    "The exit code is then 1.",
    "Reports must be of this cluster, and one of them newer than the last change of ClusterInformation, which every lock of the datastore is.",
    "They must be of this release and the datastore must be locked, unless --force is given. An address that an endpoint names, or that was",
    "assigned again since the report, is kept in any case.",
  ].join("\n"),
  options: [
    { name: "ip", value: "ADDRESS", repeats: true, summary: "Address to release; can be repeated" },
    { name: "pod", value: "NAMESPACE/POD", summary: "Pod for which addresses are kept, to release them" },
    { name: "handle", value: "HANDLE", summary: "Handle whose addresses to release (NETWORK.CONTAINER)" },
    {
      name: "from-report",
      value: "FILE",
      repeats: true,
      summary:
        'Release what reports of "ipam check --report" show as leaked; with several, what is leaked in all of them',
    },
    { name: "force", summary: "Release addresses that workloads use; with --from-report, see above" },
  ],
  needsDatastore: true,
  examples: [
    { command: "ipam release --ip 10.0.0.5", does: "Release one address" },
    { command: "ipam release --pod shop/db-0", does: "Free the addresses that wait for a pod" },
    { command: "ipam release --handle pods.4f6c1d", does: "Release all addresses of a container" },
    {
      command: "ipam release --from-report monday.json --from-report tuesday.json",
      does: "Release what was leaked both times",
    },
  ],
  load: loadOnce(() => import("./release/release.ts")),
};

export const ipamReserve: Command = {
  kind: "command",
  name: "reserve",
  summary: "Keep an address for a pod that does not exist yet",
  description: [
    "The address then waits for the pod, as if the pod had used it before, and nobody else gets it. The pod gets it at its next",
    "ADD, on any node, if it keeps its addresses: by the annotation keepAddresses of it or its namespace, or by its pool.",
    "A pod may have one address of each family. The address must be in an enabled pool, free, and not rest for another owner.",
    "The same call again lets it wait as long again. If no pod comes in that time, it is freed.",
  ].join("\n"),
  operands: "NAMESPACE/POD ADDRESS",
  options: [
    { name: "keep-for", value: "DURATION", summary: `How long it waits for the pod (default: ${USUAL_KEEP_FOR})` },
    {
      name: "network",
      value: "NAME",
      summary: 'Network of the pod: "name" of its network config (default: the network of all pods, if there is one)',
    },
  ],
  needsDatastore: true,
  examples: [
    { command: "ipam reserve shop/db-0 10.0.0.5", does: "Keep an address for a pod" },
    { command: "ipam reserve shop/db-0 10.0.0.5 --keep-for 72h", does: "The same for three days" },
  ],
  load: loadOnce(() => import("./reserve/reserve.ts")),
};

export const ipamSplit: Command = {
  kind: "command",
  name: "split",
  summary: "Divide a pool into smaller pools of equal size",
  description: [
    "Creates the pools split-POOL-0, split-POOL-1 and so on with the settings of the pool, and deletes the pool. Blocks and addresses in",
    "use stay as they are. NUMBER is a power of two, and no part may be smaller than a block.",
    "The datastore must be locked (see the examples), so that nothing is assigned meanwhile, and unlocked afterwards.",
    "If it is stopped at any point, the same call goes on where it was; once it is done, the same call changes nothing.",
  ].join("\n"),
  operands: "NUMBER",
  options: [
    { name: "name", value: "NAME", summary: "Name of the pool" },
    { name: "cidr", value: "CIDR", summary: "CIDR of the pool, instead of its name" },
    DRY_RUN_OPTION,
  ],
  needsDatastore: true,
  examples: [
    {
      command: `patch clusterinformation default -p '{"spec":{"datastoreReady":false}}'`,
      does: "Lock the datastore first; with true it is unlocked",
    },
    { command: "ipam split 4 --name blue --dry-run", does: "Show the four pools that a pool would become" },
    { command: "ipam split 4 --name blue", does: "Divide a pool into four" },
    { command: "ipam split 2 --cidr 10.0.0.0/16", does: "Divide the pool with this CIDR into halves" },
  ],
  load: loadOnce(() => import("./split/split.ts")),
};

const BOOLEAN = ["true", "false"] as const;

export const ipamConfigure: Command = {
  kind: "command",
  name: "configure",
  summary: "Configure how blocks are allocated to nodes",
  options: [
    {
      name: "strict-affinity",
      value: "BOOLEAN",
      oneOf: BOOLEAN,
      summary: "Forbid borrowing addresses from other nodes' blocks",
    },
    { name: "strictaffinity", value: "BOOLEAN", oneOf: BOOLEAN, summary: "The same as --strict-affinity" },
    {
      name: "auto-allocate-blocks",
      value: "BOOLEAN",
      oneOf: BOOLEAN,
      summary: "Allocate new blocks to nodes automatically",
    },
    { name: "max-blocks-per-host", value: "NUMBER", summary: "Maximum number of blocks per node; 0 for the default" },
    {
      name: "cooldown-seconds",
      value: "NUMBER",
      summary: "Seconds for which a released address is given to no other owner, 0 to 86400; pools may override it",
    },
    {
      name: "longest-keep-for",
      value: "DURATION",
      summary: "Longest time for which annotations may have addresses kept (default: 168h); 0s for no limit",
    },
  ],
  needsDatastore: true,
  examples: [
    { command: "ipam configure --strict-affinity true", does: "Assign addresses only from the node's own blocks" },
    { command: "ipam configure --max-blocks-per-host 4", does: "Allow at most four blocks per node" },
    { command: "ipam configure --cooldown-seconds 600", does: "Keep released addresses unused for ten minutes" },
  ],
  load: loadOnce(() => import("./configure.ts")),
};
