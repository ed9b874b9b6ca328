import { findInstalledNetwork, isForAgentOnly } from "../../config/installed-network.ts";
import type { NetworkConfig } from "../../config/network-config.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { readEach } from "../../datastore/read-each.ts";
import { PluginError } from "../../errors.ts";
import { type ClusterSources, clusterSources } from "../../firewall/cluster-sources.ts";
import type { NatPool } from "../../firewall/nat-table.ts";
import type { RecordedSources } from "../../firewall/recorded-sources.ts";
import { parsePrefix } from "../../ip/prefix.ts";
import { resourcesPrefix } from "../../model/keys.ts";
import { NODE } from "../../model/kinds.ts";
import type { Node } from "../../model/node.ts";
import { readSettings } from "../../upkeep/read-settings.ts";
import { readFloating } from "../../upkeep/recorded-floating.ts";
import { type MarkedLinks, readRecordedSources } from "../../upkeep/recorded-sources.ts";
import { withDatastore } from "../datastore/open.ts";
import { nameOfNode } from "../host/node-name.ts";
import { poolsIn } from "../ipam/pools.ts";
import { EXIT_OK, type ExitCode, type Given, wantsJson } from "../main/command.ts";
import type { Clock, DatastoreAccess, Host, Terminal } from "../main/context.ts";
import { withRemedy } from "../resources/unreadable-remedy.ts";
import { ownTableFindings } from "./own-table-findings.ts";

export async function run(context: DatastoreAccess & Host & Clock, given: Given): Promise<ExitCode> {
  if ((await context.readAgentFacts()).agent === "running") {
    return awaitAgent(context, given);
  }
  const installed = await findInstalledNetwork(context);
  const config = installed?.decoded.config;
  const { marks: ownLinks, marksWithSources: marks, attachments } = await context.hostLinks();
  const warn = (message: string) => context.stderr(`warning: ${message}\n`);
  const { entries, routing, sources, nodes, floating } = await withDatastore(context, given, async (store) => ({
    entries: await readAllEntries(store, resourcesPrefix("ippools")),
    routing: (await readSettings(store, await nameOfNode(context, given))).routing,
    sources: await sourcesOf(store, { config, marks, attachments, node: () => nameOfNode(context, given) }),
    nodes: config?.features.allowedSourcePrefixes ? await readNodes(store) : undefined,
    floating: await readFloating(
      store,
      {
        node: await nameOfNode(context, given),
        ...{ marks: ownLinks, attachments },
        allowsFloating: config?.features.floatingIps ?? false,
      },
      warn,
    ),
  }));
  const { readable, unreadable } = poolsIn(entries);
  const [first] = unreadable;
  // The table must not forget a pool that may have natOutgoing.
  if (first && routing === "Enabled") throw withRemedy(first.key, first.failure);
  const isRouted = routing === "Enabled";
  const wanted = {
    pools: isRouted ? readable : [],
    sources,
    ...(nodes === undefined || config === undefined
      ? {}
      : { clusterSources: excludedSources(config, { pools: readable, nodes }) }),
    hasGuard: installed === undefined || !isForAgentOnly(installed) || ownLinks.size > 0,
    floating: isRouted ? floating : [],
  };
  const written = await context.restoreTables(wanted, warn);
  if (wantsJson(given)) context.stdout(`${JSON.stringify({ written })}\n`);
  else if (written.length > 0) context.stdout(`Wrote the nftables tables of this host again: ${written.join(", ")}\n`);
  else context.stdout("The nftables tables of this host are up to date\n");
  return EXIT_OK;
}

/** While the network config does not allow further sources, no link has any; without a config nothing is known about it. */
async function sourcesOf(
  store: Datastore,
  {
    config,
    node,
    ...links
  }: MarkedLinks & {
    readonly config: NetworkConfig | undefined;
    readonly node: () => Promise<string>;
  },
): Promise<readonly RecordedSources[]> {
  if (config === undefined || links.marks.size === 0) return [];
  if (!config.features.allowedSourcePrefixes) return [...links.marks].map((mark) => ({ mark, prefixes: [] }));
  return readRecordedSources(store, { node: await node(), ...links });
}

function excludedSources(
  { clusterSourcePrefixes }: NetworkConfig,
  { pools, nodes }: { readonly pools: readonly NatPool[]; readonly nodes: readonly Node[] },
): ClusterSources {
  return clusterSources({
    pools: pools.map(({ cidr }) => cidr),
    nodes: nodes.map(({ spec }) => spec),
    permitted: clusterSourcePrefixes.flatMap((text) => parsePrefix(text) ?? []),
  });
}

/** An unreadable one does not keep the others from being excluded. */
async function readNodes(store: Datastore): Promise<readonly Node[]> {
  const entries = await readAllEntries(store, NODE.prefix());
  return readEach(entries, ({ value, key }) => NODE.codec.read(value, key)).readable;
}

/** How long the agent, which looks every second, may take. */
const AGENT_ATTEMPTS = 5;
const AGENT_MILLISECONDS = 1_000;

/** The agent writes the tables itself, and what is read here might be older: only what it leaves is reported. */
async function awaitAgent(context: Terminal & Host & Clock, given: Given): Promise<ExitCode> {
  for (let attempt = 1; ; attempt++) {
    const wrong = ownTableFindings(await context.readHostFacts()).filter(({ state }) => state !== "ok");
    if (wrong.length === 0) break;
    if (attempt === AGENT_ATTEMPTS) {
      throw new PluginError(
        "kernel-refused",
        `The node agent of this host runs, and has not restored its tables: ${wrong.map(({ message }) => message).join("; ")}`,
        { details: "see its log" },
      );
    }
    await context.wait(AGENT_MILLISECONDS);
  }
  if (wantsJson(given)) context.stdout(`${JSON.stringify({ written: [], writer: "node agent" })}\n`);
  else context.stdout("The node agent of this host runs and restores its tables: they are in place\n");
  return EXIT_OK;
}
