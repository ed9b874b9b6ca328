import { counted } from "../../../counted.ts";
import { PluginError } from "../../../errors.ts";
import { isDuration, millisecondsOf } from "../../../model/duration.ts";
import { quoted } from "../../../quote.ts";
import { type Collected, collectLeaks, describeCollected } from "../../../upkeep/collect-leaks.ts";
import { withDatastoreAndApi, withDatastoreAndMaybeApi } from "../../datastore/open.ts";
import { NODE_NAME_OPTION, nameOfNode } from "../../host/node-name.ts";
import {
  type Command,
  type Context,
  EXIT_OK,
  type ExitCode,
  type Given,
  UsageError,
  wantsJson,
} from "../../main/command.ts";
import { reportUnreadable } from "../report-unreadable.ts";

const DEFAULT_GRACE = "15m";
const SHORTEST_GRACE = 60_000;

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
  async run(context, given) {
    if (given.switches.has("cluster")) return collectInCluster(context, given);
    const ofCluster = ["grace", "dead-node", "yes"].find(
      (name) => given.values.has(name) || given.lists.has(name) || given.switches.has(name),
    );
    if (ofCluster !== undefined) throw new UsageError(`"--${ofCluster}" applies only to --cluster`);
    const node = await nameOfNode(context, given);
    const links = await context.hostLinks();
    if (!links.isHostNamespace && !given.switches.has("any-namespace")) throw otherNamespace();
    const report = await withDatastoreAndMaybeApi(context, given, (store, { kind }, openApi) =>
      collectLeaks(
        store,
        {
          ...{ node, isEmbedded: kind === "embedded", links, openApi },
          earlier: given.switches.has("before-registration") ? "judge" : "keep",
          isDryRun: given.switches.has("dry-run"),
        },
        { ...context, warn: (message) => context.stderr(`${message}\n`) },
      ),
    );
    print(report, context, given);
    if (report.failure !== undefined) throw report.failure;
    return EXIT_OK;
  },
};

async function collectInCluster(context: Context, given: Given): Promise<ExitCode> {
  const other = ["before-registration", "any-namespace", "name"].find(
    (name) => given.switches.has(name) || given.values.has(name),
  );
  if (other !== undefined) throw new UsageError(`"--cluster" and "--${other}" cannot be combined`);
  const graceMilliseconds = graceOf(given);
  const isDryRun = given.switches.has("dry-run");
  const { searchCluster } = await import("./gc-cluster.ts");
  const { reportJson, reportText } = await import("./gc-cluster-report.ts");
  const report = await withDatastoreAndApi(context, given, (store, client, { kind }) =>
    searchCluster(
      {
        ...{ store, client, hasEndpointRecords: kind === "etcd", graceMilliseconds, isDryRun },
        ...{ deadNodes: new Set(given.lists.get("dead-node")), isLargeAllowed: given.switches.has("yes") },
      },
      context,
    ),
  );
  context.stdout(wantsJson(given) ? reportJson(report, isDryRun) : reportText(report));
  return reportUnreadable(context, report.unreadable);
}

function graceOf({ values }: Given): number {
  const text = values.get("grace") ?? DEFAULT_GRACE;
  const isWellFormed = isDuration(text);
  if (isWellFormed && millisecondsOf(text) >= SHORTEST_GRACE) return millisecondsOf(text);
  const state = isWellFormed ? "shorter than a minute" : "not a duration";
  throw new UsageError(`"--grace" is ${quoted(text)}: ${state}; use for example "${DEFAULT_GRACE}"`);
}

function otherNamespace(): PluginError {
  return new PluginError(
    "environment-invalid",
    "Cannot search for leaks: this is not the network namespace of the host",
    {
      details:
        "run the command on the host itself, or with --any-namespace if its containers are wired in this namespace",
    },
  );
}

function print(report: Collected, context: Context, given: Given): void {
  const { node, isDryRun, leaks, released, blocks, unjudged } = report;
  if (wantsJson(given)) {
    const found = leaks.map(({ address, reason }) => ({ address, reason }));
    context.stdout(
      `${JSON.stringify({ node, leaks: found, released, blocks: isDryRun ? [] : blocks, unjudged }, undefined, 2)}\n`,
    );
    return;
  }
  for (const line of describeCollected(report)) context.stdout(`${line}\n`);
  if (unjudged > 0) {
    const text = counted(unjudged, "address without a link was", "addresses without a link were");
    context.stderr(
      `${text} assigned before this machine registered the node: use --before-registration if no other machine uses the name\n`,
    );
  }
}
