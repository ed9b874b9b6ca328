import { counted } from "../../../counted.ts";
import { PluginError } from "../../../errors.ts";
import { isDuration, millisecondsOf } from "../../../model/duration.ts";
import { quoted } from "../../../quote.ts";
import { type Collected, collectLeaks, describeCollected } from "../../../upkeep/collect-leaks.ts";
import { withDatastoreAndApi, withDatastoreAndMaybeApi } from "../../datastore/open.ts";
import { nameOfNode } from "../../host/node-name.ts";
import { EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../../main/command.ts";
import type { Clock, DatastoreAccess, Host, Terminal } from "../../main/context.ts";
import { DEFAULT_GRACE } from "../options.ts";
import { reportUnreadable } from "../report-unreadable.ts";

const SHORTEST_GRACE = 60_000;

export async function run(context: DatastoreAccess & Host & Clock, given: Given): Promise<ExitCode> {
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
}

async function collectInCluster(context: DatastoreAccess & Clock, given: Given): Promise<ExitCode> {
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

function print(report: Collected, context: Terminal, given: Given): void {
  const { node, isDryRun, leaks, released, blocks, waited, unjudged } = report;
  if (wantsJson(given)) {
    const found = leaks.map(({ address, reason }) => ({ address, reason }));
    context.stdout(
      `${JSON.stringify({ node, leaks: found, released, blocks: isDryRun ? [] : blocks, waited, unjudged }, undefined, 2)}\n`,
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
