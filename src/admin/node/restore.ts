import type { Datastore } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { readEach } from "../../datastore/read-each.ts";
import { identity } from "../../identity.ts";
import { type IPPool, ipPool } from "../../model/ip-pool.ts";
import { resourcesPrefix } from "../../model/keys.ts";
import { type Command, type Context, EXIT_OK, wantsJson } from "../command.ts";
import { withDatastore } from "../datastore/open.ts";
import { findInstalledNetwork } from "../installed-network.ts";
import { findPools } from "../ipam/pools.ts";
import { withRemedy } from "../resources/unreadable-remedy.ts";
import { NODE_NAME_OPTION, nameOfNode } from "./node-name.ts";
import { podMtu } from "./pod-mtu.ts";
import { readFloating } from "./recorded-floating.ts";
import { readRecordedSources } from "./recorded-sources.ts";

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
    "Host ports of a container come back only with an ADD of that container.",
  ].join("\n"),
  options: [
    NODE_NAME_OPTION,
    { name: "for-agent", summary: "Do nothing without an installed network config, and print only changes" },
  ],
  needsDatastore: true,
  examples: [{ command: "node restore", does: "Write the tables again after another program flushed them" }],
  async run(context, given) {
    const isForAgent = given.switches.has("for-agent");
    if (isForAgent && (await findInstalledNetwork(context)) === undefined) return EXIT_OK;
    const { marksWithSources: marks } = await context.hostLinks();
    const warn = (message: string) => context.stderr(`warning: ${message}\n`);
    const { pools, tunnels, sources, floating } = await withDatastore(context, given, async (store) => ({
      pools: await findPools(store),
      tunnels: isForAgent ? await readPoolSpecs(store) : [],
      sources:
        marks.size === 0 ? [] : await readRecordedSources(store, { node: await nameOfNode(context, given), marks }),
      // The agent itself writes them as soon as an endpoint changes: what is read here might be older.
      ...(isForAgent ? {} : { floating: await readFloating(store, await nameOfNode(context, given), warn) }),
    }));
    const { readable, unreadable } = pools;
    const [first] = unreadable;
    // The table must not forget a pool that may have natOutgoing.
    if (first) throw withRemedy(first.key, first.failure);
    const wanted = { pools: readable, sources, ...(floating === undefined ? {} : { floating }) };
    const written = await context.restoreTables(wanted, warn);
    if (isForAgent) await writeMtu(tunnels, context);
    if (wantsJson(given)) context.stdout(`${JSON.stringify({ written })}\n`);
    else if (written.length > 0)
      context.stdout(`Wrote the nftables tables of this host again: ${written.join(", ")}\n`);
    else if (!isForAgent) context.stdout("The nftables tables of this host are up to date\n");
    return EXIT_OK;
  },
};

const MTU_FILE = `${identity.stateDirectory}/mtu`;

/** Of the readable ones. */
async function readPoolSpecs(store: Datastore): Promise<readonly IPPool["spec"][]> {
  const entries = await readAllEntries(store, resourcesPrefix("ippools"));
  return readEach(entries, ({ value, key }) => ipPool.read(value, key)).readable.map(({ spec }) => spec);
}

async function writeMtu(pools: readonly IPPool["spec"][], context: Context): Promise<void> {
  const mtu = podMtu(await context.uplinkMtu(), pools);
  if (mtu === undefined || !(await context.replaceFile(MTU_FILE, `${mtu}\n`))) return;
  context.stdout(`New pods get an MTU of ${mtu} bytes unless the network config sets another\n`);
}
