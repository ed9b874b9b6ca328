import { findInstalledNetwork, isForAgentOnly } from "../../config/installed-network.ts";
import type { NetworkConfig } from "../../config/network-config.ts";
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { readEach } from "../../datastore/read-each.ts";
import { type ClusterSources, clusterSources } from "../../firewall/cluster-sources.ts";
import type { NatPool } from "../../firewall/nat-table.ts";
import type { RecordedSources } from "../../firewall/recorded-sources.ts";
import { parsePrefix } from "../../ip/prefix.ts";
import { type IPPool, ipPool } from "../../model/ip-pool.ts";
import { resourcesPrefix } from "../../model/keys.ts";
import { NODE } from "../../model/kinds.ts";
import type { Node } from "../../model/node.ts";
import { nodeLinkMtu, POD_MTU_FILE, podMtu } from "../../routing/pod-mtu.ts";
import { type Command, type Context, EXIT_OK, wantsJson } from "../command.ts";
import { withDatastore } from "../datastore/open.ts";
import { poolsIn } from "../ipam/pools.ts";
import { withRemedy } from "../resources/unreadable-remedy.ts";
import { NODE_NAME_OPTION, nameOfNode } from "./node-name.ts";
import { readSettings } from "./read-settings.ts";
import { readFloating } from "./recorded-floating.ts";
import { type MarkedLinks, readRecordedSources } from "./recorded-sources.ts";

export const nodeRestore: Command = {
  kind: "command",
  name: "restore",
  summary: "Write the nftables tables that all pods of this host share again",
  description: [
    "Runs on the node, as root. Compares the tables for outgoing NAT, for floating IPs and against spoofed addresses with the",
    'pools and with the endpoints of this node, and writes them if they are missing or outdated: after "nft flush ruleset", or',
    "after a pool was changed.",
    "The node agent does this at its start and every few minutes, and follows floating IPs all the time. Every ADD does it for",
    "outgoing NAT and against spoofed addresses.",
    "For the agent, the MTU file is written too, which tells plugins the MTU of new pods.",
    "Host ports of a container come back only with an ADD of that container; what keeps it from the host's loopback (the filters of its",
    "link and the guard chain) is restored.",
  ].join("\n"),
  options: [
    NODE_NAME_OPTION,
    { name: "for-agent", summary: "Do nothing without an installed network config, and print only changes" },
  ],
  needsDatastore: true,
  versionCheck: "none",
  examples: [{ command: "node restore", does: "Write the tables again after another program flushed them" }],
  async run(context, given) {
    const isForAgent = given.switches.has("for-agent");
    const installed = await findInstalledNetwork(context);
    if (isForAgent && installed === undefined) return EXIT_OK;
    const config = installed?.decoded.config;
    const { marks: ownLinks, marksWithSources: marks, attachments } = await context.hostLinks();
    const warn = (message: string) => context.stderr(`warning: ${message}\n`);
    const { entries, routing, node, sources, nodes, floating } = await withDatastore(context, given, async (store) => ({
      entries: await readAllEntries(store, resourcesPrefix("ippools")),
      routing: (await readSettings(store, await nameOfNode(context, given))).routing,
      node: isForAgent ? await readNode(store, await nameOfNode(context, given)) : undefined,
      sources: await sourcesOf(store, { config, marks, attachments, node: () => nameOfNode(context, given) }),
      // The agent follows the nodes all the time.
      nodes: isForAgent || !config?.features.allowedSourcePrefixes ? undefined : await readNodes(store),
      // The agent itself writes them as soon as an endpoint changes: what is read here might be older.
      ...(isForAgent
        ? {}
        : {
            floating: await readFloating(
              store,
              {
                node: await nameOfNode(context, given),
                ...{ marks: ownLinks, attachments },
                allowsFloating: config?.features.floatingIps ?? false,
              },
              warn,
            ),
          }),
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
      ...(floating === undefined ? {} : { floating: isRouted ? floating : [] }),
    };
    const written = await context.restoreTables(wanted, warn);
    if (isForAgent) await writeMtu(isRouted ? specsIn(entries) : [], node, context);
    if (wantsJson(given)) context.stdout(`${JSON.stringify({ written })}\n`);
    else if (written.length > 0)
      context.stdout(`Wrote the nftables tables of this host again: ${written.join(", ")}\n`);
    else if (!isForAgent) context.stdout("The nftables tables of this host are up to date\n");
    return EXIT_OK;
  },
};

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

/** Of the readable ones. */
function specsIn(entries: readonly Entry[]): readonly IPPool["spec"][] {
  return readEach(entries, ({ value, key }) => ipPool.read(value, key)).readable.map(({ spec }) => spec);
}

/** `undefined` also if it is unreadable: then the links with a default route count. */
async function readNode(store: Datastore, name: string): Promise<Node | undefined> {
  const { answers } = await store.read([{ kind: "key", key: NODE.key({ name }) }]);
  return readEach(answers.flat(), ({ value, key }) => NODE.codec.read(value, key)).readable[0];
}

async function writeMtu(pools: readonly IPPool["spec"][], node: Node | undefined, context: Context): Promise<void> {
  const underlying = nodeLinkMtu(await context.hostAddresses(), node?.spec.bgp) ?? (await context.uplinkMtu());
  const mtu = podMtu(underlying, pools);
  if (mtu === undefined || !(await context.replaceFile(POD_MTU_FILE, `${mtu}\n`))) return;
  context.stdout(`New pods get an MTU of ${mtu} bytes unless the network config sets another\n`);
}
