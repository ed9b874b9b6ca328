/** The tables that all pods of this host share: what each of them must have, and a writer of all of them while no agent runs. */
import { restoreLoopbackGuard } from "../chained/portmap/restore-guard.ts";
import { restoreHostPorts } from "../chained/portmap/restore-ports.ts";
import { PluginError } from "../errors.ts";
import { applyFloating } from "../firewall/apply-floating.ts";
import { applyGuard } from "../firewall/apply-guard.ts";
import { applyNat } from "../firewall/apply-nat.ts";
import type { ClusterSources } from "../firewall/cluster-sources.ts";
import type { FloatingAddress } from "../firewall/floating-addresses.ts";
import { FLOATING_TABLE } from "../firewall/floating-table.ts";
import { GUARD_TABLE } from "../firewall/guard-table.ts";
import { NAT_TABLE, type NatPool } from "../firewall/nat-table.ts";
import type { RecordedSources } from "../firewall/recorded-sources.ts";
import { removeDeadSources, setAllowedSources, setClusterSources } from "../firewall/source-prefixes.ts";
import type { FileFolder } from "../linux/file-folder.ts";
import { isKernelError, KernelError } from "../linux/kernel-error.ts";
import { netfilterOf } from "../linux/netfilter-access.ts";
import type { NetlinkSocket, SocketOpener } from "../linux/netlink-socket.ts";
import type { TableReference } from "../linux/nftables/ruleset.ts";
import { listLinks } from "../linux/rtnetlink/link.ts";
import { withRouteSocket } from "../linux/rtnetlink/route-socket.ts";

/** What the tables that all pods of a host share are made of. */
export interface WantedTables {
  readonly pools: readonly NatPool[];
  readonly sources: readonly RecordedSources[];
  /** Addresses that pods may not use as further sources; absent if there are none. */
  readonly clusterSources?: ClusterSources;
  /** Against spoofed addresses of pods; not if another plugin connects all pods of the host. */
  readonly hasGuard: boolean;
  /** Floating IPs of pods of this node. */
  readonly floating: readonly FloatingAddress[];
}

export interface TablesHost {
  readonly kernel: SocketOpener;
  /** Of what ADDs assigned: see record-file.ts of portmap. */
  readonly hostPorts: FileFolder;
}

/** What is wanted of each table, asked when it is compared: an agent may learn more meanwhile. */
export interface WantedNow {
  /** `undefined`: not known yet; what a former writer has left stays. */
  readonly pools: () => readonly NatPool[] | undefined;
  readonly floating: () => readonly FloatingAddress[] | undefined;
  readonly clusterSources: () => ClusterSources | undefined;
  readonly sources: () => readonly RecordedSources[];
  readonly hasGuard: () => boolean;
}

/** What one writer compares at a time. */
export interface ComparedTable {
  /** For a message: what cannot be restored if it fails. */
  readonly what: string;
  /** Returns the tables that were written. */
  readonly compare: (socket: NetlinkSocket) => Promise<readonly TableReference[]>;
}

/** All tables that the pods of a host share, for the agent and for the command: a new one has its row here. */
export function comparedTables(
  { kernel, hostPorts }: TablesHost,
  wanted: WantedNow,
  warn: (message: string) => void,
): readonly ComparedTable[] {
  const table = (
    reference: TableReference,
    apply: (socket: NetlinkSocket) => boolean | Promise<boolean>,
  ): ComparedTable => ({
    what: `table ${reference.family} "${reference.name}"`,
    compare: async (socket) => ((await apply(socket)) ? [reference] : []),
  });
  return [
    table(NAT_TABLE, async (socket) => {
      const pools = wanted.pools();
      return pools !== undefined && applyNat(socket, pools);
    }),
    table(GUARD_TABLE, async (socket) => {
      if (!wanted.hasGuard()) return false;
      const isNew = await applyGuard(socket, warn);
      const areSourcesNew = restoreSources(kernel, socket, wanted.sources());
      const clusterSources = wanted.clusterSources();
      const isClusterNew = clusterSources !== undefined && setClusterSources(socket, clusterSources);
      return isNew || areSourcesNew || isClusterNew;
    }),
    table(FLOATING_TABLE, (socket) => {
      const floating = wanted.floating();
      return floating !== undefined && applyFloating(socket, floating);
    }),
    {
      what: "the guard of the host's loopback",
      compare: async (socket) => restoreLoopbackGuard(kernel, socket, warn),
    },
    { what: "host ports", compare: (socket) => restoreHostPorts(kernel, socket, hostPorts, warn) },
  ];
}

/** Each once. */
export function tableNames(tables: readonly TableReference[]): readonly string[] {
  return [...new Set(tables.map(({ family, name }) => `${family} ${name}`))];
}

/** Returns the names of the tables that were written. A kernel that cannot do it is warned about unless a pool or a pod needs NAT. */
export async function restoreTables(
  host: TablesHost,
  { pools, sources, clusterSources, floating, hasGuard }: WantedTables,
  warn: (message: string) => void,
): Promise<readonly string[]> {
  const wanted: WantedNow = {
    pools: () => pools,
    floating: () => floating,
    clusterSources: () => clusterSources,
    sources: () => sources,
    hasGuard: () => hasGuard,
  };
  try {
    return await netfilterOf(host.kernel).withSocket(async (socket) => {
      const written: TableReference[] = [];
      for (const { compare } of comparedTables(host, wanted, warn)) written.push(...(await compare(socket)));
      return tableNames(written);
    });
  } catch (cause) {
    if (isKernelError(cause, "EACCES", "EPERM")) {
      const details = "run it as root";
      throw new PluginError("kernel-refused", "Cannot write the tables: permission denied", { details, cause });
    }
    const isNatNeeded = pools.some(({ natOutgoing }) => natOutgoing) || floating.length > 0;
    if (isNatNeeded || !(cause instanceof KernelError)) throw cause;
    warn(cause.message);
    return [];
  }
}

/**
 * A pod may have joined since its records were read, so only links with a record are changed. Returns whether
 * something was written.
 */
function restoreSources(kernel: SocketOpener, socket: NetlinkSocket, sources: readonly RecordedSources[]): boolean {
  const wasCleared = removeDeadSources(kernel, socket);
  if (sources.length === 0) return wasCleared;
  const known = new Map(withRouteSocket(kernel, listLinks).map((link) => [link.alias, link]));
  const links = sources.flatMap(({ mark, prefixes }) => {
    const link = known.get(mark);
    return link === undefined ? [] : [{ linkIndex: link.index, linkName: link.name, prefixes }];
  });
  return setAllowedSources(socket, links) || wasCleared;
}
