/**
 * Restores what keeps pods with host ports from the host's loopback, for the node agent: the filters of each link on
 * which `route_localnet` is on, and the guard chain of the table. After "nft flush ruleset" only the filters are left;
 * links that a former release set up lack some of them. The ports themselves: restore-ports.ts.
 */
import { identity } from "../../identity.ts";
import { KernelError } from "../../linux/kernel-error.ts";
import type { NetlinkSocket, SocketOpener } from "../../linux/netlink-socket.ts";
import { commit } from "../../linux/nftables/commit.ts";
import { listRules } from "../../linux/nftables/read.ts";
import type { NftChange, TableReference } from "../../linux/nftables/ruleset.ts";
import { type Link, listLinks } from "../../linux/rtnetlink/link.ts";
import { loopbackFilterState, reflectLoopback } from "../../linux/rtnetlink/loopback-filter.ts";
import { withRouteSocket } from "../../linux/rtnetlink/route-socket.ts";
import { disallowLoopbackSources, needsLoopbackFilters } from "./loopback-sources.ts";
import { chainsOf, rulesOf } from "./rules.ts";
import { CHAIN, tableOf } from "./table.ts";

/** Returns the table if it was written. A link whose filters cannot be restored stops serving host ports on 127.0.0.1. */
export function restoreLoopbackGuard(
  kernel: SocketOpener,
  socket: NetlinkSocket,
  warn: (message: string) => void,
): readonly TableReference[] {
  const isServing = withRouteSocket(kernel, (route) => {
    const links = listLinks(route).filter((link) => servesLoopback(route, link));
    for (const link of links) restoreFilters(route, link, warn);
    return links.length > 0;
  });
  const table = tableOf(4);
  if (!isServing || hasGuard(socket, table)) return [];
  commit(socket, guardChanges(table));
  return [table];
}

/** A link of another program has none of our filters, even if it has the setting. */
function servesLoopback(route: NetlinkSocket, link: Link): boolean {
  if (!needsLoopbackFilters({ name: link.name, isShared: link.kind === "bridge" })) return false;
  return link.name.startsWith(identity.interfacePrefix) || loopbackFilterState(route, link) !== "none";
}

function restoreFilters(route: NetlinkSocket, link: Link, warn: (message: string) => void): void {
  if (loopbackFilterState(route, link) === "all") return;
  try {
    reflectLoopback(route, link);
  } catch (failure) {
    if (!(failure instanceof KernelError)) throw failure;
    disallowLoopbackSources(link.name);
    warn(`Host ports behind link "${link.name}" are no longer served on 127.0.0.1: ${failure.message}`);
  }
}

function hasGuard(socket: NetlinkSocket, table: TableReference): boolean {
  const found = listRules(socket, table, CHAIN.guard);
  const wanted = guardRules();
  return (
    found.length === wanted.length &&
    wanted.every(({ expressions }, index) => Bun.deepEquals(found[index]?.expressions, expressions))
  );
}

function guardChanges(table: TableReference): readonly NftChange[] {
  return [
    { kind: "add-table", table },
    ...chainsOf(4)
      .filter(({ name }) => name === CHAIN.guard)
      .map((chain): NftChange => ({ kind: "add-chain", table, chain })),
    { kind: "flush-chain", table, chain: CHAIN.guard },
    ...guardRules().map((rule): NftChange => ({ kind: "add-rule", table, rule })),
  ];
}

function guardRules() {
  return rulesOf(4).filter(({ chain }) => chain === CHAIN.guard);
}
