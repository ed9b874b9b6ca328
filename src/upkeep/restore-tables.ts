/** Writes the tables that all pods of this host share, while no agent does. */
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

/** Returns the names of the tables that were written. A kernel that cannot do it is warned about unless a pool or a pod needs NAT. */
export async function restoreTables(
  { kernel, hostPorts }: TablesHost,
  { pools, sources, clusterSources, floating, hasGuard }: WantedTables,
  warn: (message: string) => void,
): Promise<readonly string[]> {
  try {
    return await netfilterOf(kernel).withSocket(async (socket) => {
      const nat = (await applyNat(socket, pools)) ? [NAT_TABLE] : [];
      const isGuardNew = hasGuard && (await applyGuard(socket, warn));
      const areSourcesNew = hasGuard && restoreSources(kernel, socket, sources);
      const isClusterNew = hasGuard && clusterSources !== undefined && setClusterSources(socket, clusterSources);
      const guard = isGuardNew || areSourcesNew || isClusterNew ? [GUARD_TABLE] : [];
      const translated = applyFloating(socket, floating) ? [FLOATING_TABLE] : [];
      const guarded = restoreLoopbackGuard(kernel, socket, warn);
      const portTables = await restoreHostPorts(kernel, socket, hostPorts, warn);
      const written = [...nat, ...translated, ...guard, ...guarded, ...portTables];
      return [...new Set(written.map(({ family, name }) => `${family} ${name}`))];
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
export function restoreSources(
  kernel: SocketOpener,
  socket: NetlinkSocket,
  sources: readonly RecordedSources[],
): boolean {
  const wasCleared = removeDeadSources(kernel, socket);
  if (sources.length === 0) return wasCleared;
  const known = new Map(withRouteSocket(kernel, listLinks).map((link) => [link.alias, link]));
  const links = sources.flatMap(({ mark, prefixes }) => {
    const link = known.get(mark);
    return link === undefined ? [] : [{ linkIndex: link.index, linkName: link.name, prefixes }];
  });
  return setAllowedSources(socket, links) || wasCleared;
}
