/**
 * The only reader and writer of the sources that links may use beside the
 * addresses of their pods: elements of the guard table, which must exist.
 *
 * Loaded only for pods that have such sources, and for what restores or checks them.
 */
import { PluginError } from "../errors.ts";
import { KernelError } from "../linux/kernel-error.ts";
import type { NetfilterAccess } from "../linux/netfilter-access.ts";
import type { NetlinkSocket, SocketOpener } from "../linux/netlink-socket.ts";
import { commit, commitCompared } from "../linux/nftables/commit.ts";
import { listElements } from "../linux/nftables/read.ts";
import type { NftElement } from "../linux/nftables/set.ts";
import { listLinks } from "../linux/rtnetlink/link.ts";
import { withRouteSocket } from "../linux/rtnetlink/route-socket.ts";
import { type AllowedSource, changesForLinks, type LinkSources, type SourceChanges } from "./allowed-sources.ts";
import { requireGuard } from "./apply-guard.ts";
import type { ClusterSources } from "./cluster-sources.ts";
import { allowedChanges, clusterChanges, clusterElements, everyAddress, sourceOfElement } from "./guard-rules.ts";
import { allowedSet, clusterSet, GUARD_TABLE } from "./guard-table.ts";

const FAMILIES = [4, 6] as const;

/** None if the table does not exist. */
export function readAllowedSources(socket: NetlinkSocket): readonly AllowedSource[] {
  const elements = FAMILIES.flatMap((family) => listElements(socket, GUARD_TABLE, allowedSet(family)));
  return elements.flatMap((element) => sourceOfElement(element) ?? []);
}

/** Makes these links use exactly these prefixes; returns whether something was written. */
export function setAllowedSources(socket: NetlinkSocket, links: readonly LinkSources[]): boolean {
  return write(socket, (present) => changesForLinks(present, links));
}

/** Removes what removed links have left; returns whether there was something. */
export function removeDeadSources(kernel: SocketOpener, socket: NetlinkSocket): boolean {
  return write(socket, (present) => {
    if (present.length === 0) return { removed: [], added: [] };
    const alive = new Set(withRouteSocket(kernel, listLinks).map(({ index }) => index));
    return { removed: present.filter(({ linkIndex }) => !alive.has(linkIndex)), added: [] };
  });
}

/** Makes these the addresses of pools and nodes; returns whether something was written. Each list is in order. */
export function setClusterSources(socket: NetlinkSocket, ranges: ClusterSources): boolean {
  const changes = FAMILIES.flatMap((family) => {
    const present = listElements(socket, GUARD_TABLE, clusterSet(family));
    return hasElements(present, clusterElements(ranges[family])) ? [] : clusterChanges(family, ranges[family]);
  });
  if (changes.length > 0) commit(socket, changes);
  return changes.length > 0;
}

/** Whether the addresses of the cluster are in the table: until then no pod may use further sources. */
export function knowsClusterSources(socket: NetlinkSocket): boolean {
  return FAMILIES.every(
    (family) => !hasElements(listElements(socket, GUARD_TABLE, clusterSet(family)), [everyAddress(family)]),
  );
}

/** Keys and ends of ranges: the kernel does not return which range is open. */
function hasElements(present: readonly NftElement[], wanted: readonly NftElement[]): boolean {
  const nameOf = ({ key, interval }: NftElement) => `${key.toHex()}${interval === "end" ? "-" : ""}`;
  const names = new Set(present.map(nameOf));
  return names.size === wanted.length && wanted.every((element) => names.has(nameOf(element)));
}

/**
 * For ADD, before the link is up: such a pod has no other guard, so the table must be in place. Throws if the kernel
 * refuses. Returns whether the prefixes take effect already.
 */
export function allowSources(netfilter: NetfilterAccess, link: LinkSources): Promise<boolean> {
  return netfilter.withSocket(async (socket) => {
    try {
      await requireGuard(socket);
      setAllowedSources(socket, [link]);
      return knowsClusterSources(socket);
    } catch (cause) {
      if (!(cause instanceof KernelError)) throw cause;
      throw new PluginError("kernel-refused", `Cannot allow further source addresses: ${cause.message}`, {
        details: "the kernel needs nf_tables with nft_fib_inet and sets of concatenated ranges (Linux 5.6 or later)",
        cause,
      });
    }
  });
}

/** After links were removed. What stays if it fails permits nothing: an index is not used again. */
export async function forgetSources(
  { kernel, netfilter }: { readonly kernel: SocketOpener; readonly netfilter: NetfilterAccess },
  warn: (message: string) => void,
): Promise<void> {
  try {
    await netfilter.withSocket((socket) => removeDeadSources(kernel, socket));
  } catch (failure) {
    if (!(failure instanceof KernelError)) throw failure;
    warn(`Elements of removed links stay in table "${GUARD_TABLE.name}": ${failure.message}`);
  }
}

function write(socket: NetlinkSocket, decide: (present: readonly AllowedSource[]) => SourceChanges): boolean {
  return commitCompared(socket, () => allowedChanges(decide(readAllowedSources(socket))));
}
