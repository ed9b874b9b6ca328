import { type Command, EXIT_OK, wantsJson } from "../command.ts";
import { withDatastore } from "../datastore/open.ts";
import { findInstalledNetwork } from "../installed-network.ts";
import { findPools } from "../ipam/pools.ts";
import { withRemedy } from "../resources/unreadable-remedy.ts";
import { NODE_NAME_OPTION, nameOfNode } from "./node-name.ts";
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
    const { pools, sources, floating } = await withDatastore(context, given, async (store) => ({
      pools: await findPools(store),
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
    if (wantsJson(given)) context.stdout(`${JSON.stringify({ written })}\n`);
    else if (written.length > 0)
      context.stdout(`Wrote the nftables tables of this host again: ${written.join(", ")}\n`);
    else if (!isForAgent) context.stdout("The nftables tables of this host are up to date\n");
    return EXIT_OK;
  },
};
