import type { Datastore } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { describeFailure, PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { WANTED_CLUSTER } from "../../ipam/cluster.ts";
import { type ClusterInformation, clusterInformation, clusterVersion } from "../../model/cluster-information.ts";
import { isDuration, millisecondsOf } from "../../model/duration.ts";
import { NODE } from "../../model/kinds.ts";
import { quoted } from "../../quote.ts";
import { type NodeVersion, nodesBehind, nodeVersion } from "../../upkeep/node-versions.ts";
import { withDatastore } from "../datastore/open.ts";
import { EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../main/command.ts";
import type { Clock, DatastoreAccess } from "../main/context.ts";

export async function run(context: DatastoreAccess & Clock, given: Given): Promise<ExitCode> {
  const clientVersion = context.version;
  const poll = pollOf(given);
  if (given.switches.has("client")) {
    const asText = `${identity.adminTool} ${clientVersion}\n`;
    context.stdout(wantsJson(given) ? `${JSON.stringify({ clientVersion })}\n` : asText);
    return EXIT_OK;
  }
  for (let before = ""; ; ) {
    const cluster = await readCluster(context, given);
    context.signal.throwIfAborted();
    const text = wantsJson(given)
      ? `${JSON.stringify({ clientVersion, ...cluster })}\n`
      : textOf(clientVersion, cluster);
    if (text !== before) context.stdout(text);
    if (poll === undefined || context.outputClosed.aborted) return EXIT_OK;
    before = text;
    await context.wait(poll);
  }
}

/** In milliseconds; `undefined` if it is asked once. */
function pollOf({ values, switches }: Given): number | undefined {
  const poll = values.get("poll");
  if (poll === undefined) return undefined;
  if (switches.has("client")) throw new UsageError("--client and --poll cannot be combined");
  if (isDuration(poll) && millisecondsOf(poll) > 0) return millisecondsOf(poll);
  throw new UsageError(`"--poll" is ${quoted(poll)}: must be a duration such as 10s or 1m`);
}

interface Cluster {
  readonly clusterVersion?: string;
  readonly clusterType?: string;
  readonly heldBackBy?: readonly NodeVersion[];
  /** Why it is unknown. */
  readonly problem?: string;
}

async function readCluster(context: DatastoreAccess, given: Given): Promise<Cluster> {
  try {
    return await withDatastore(context, given, async (store) => {
      const information = await readInformation(store);
      if (information === undefined) return { problem: "the datastore is not initialized" };
      const version = clusterVersion(information);
      const { clusterType } = information.spec;
      const heldBackBy = nodesBehind((await readAllEntries(store, NODE.prefix())).map(nodeVersion));
      return {
        ...(version === undefined ? {} : { clusterVersion: version }),
        ...(clusterType === undefined ? {} : { clusterType }),
        ...(heldBackBy.length === 0 ? {} : { heldBackBy }),
      };
    });
  } catch (failure) {
    if (!(failure instanceof PluginError)) throw failure;
    return { problem: describeFailure(failure) };
  }
}

async function readInformation(store: Datastore): Promise<ClusterInformation | undefined> {
  const entry = (await store.read([WANTED_CLUSTER])).answers[0]?.[0];
  return entry && clusterInformation.read(entry.value, entry.key);
}

function textOf(client: string, { clusterVersion: cluster, clusterType, heldBackBy = [], problem }: Cluster): string {
  const unknown = problem === undefined ? "unknown" : `unknown (${problem})`;
  return [
    `Client Version:     ${client}`,
    `Cluster Version:    ${cluster ?? unknown}`,
    ...(clusterType === undefined ? [] : [`Cluster Type:       ${clusterType}`]),
    ...heldBackBy.map(
      ({ node, version = "no agent has recorded its version" }, index) =>
        `${(index === 0 ? "Held Back By:" : "").padEnd(20)}node ${quoted(node)} (${version})`,
    ),
    "",
  ].join("\n");
}
