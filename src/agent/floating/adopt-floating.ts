/**
 * Floating IPs of pods that a former release has connected. It recorded nothing on the host, so what its agent has left in the
 * kernel is recorded here, when an agent of this release starts while floating IPs are switched on.
 *
 * The version of the kernel's table says whose agent wrote it (firewall/floating-table.ts). This release replaces the table as
 * soon as it knows the endpoints, so nothing is adopted twice; it empties it while the switch is off, so nothing of that time
 * counts after a later switch-on; and what a former release connects after a rollback is adopted by the next upgrade.
 */
import { readFloatingWithoutRecords } from "../../firewall/apply-floating.ts";
import type { FloatingAddress } from "../../firewall/floating-addresses.ts";
import { formatAddress, isSameAddress } from "../../ip/address.ts";
import { readAttachment, writeAttachment } from "../../ipam/attachment-record.ts";
import type { FileFolder } from "../../linux/file-folder.ts";
import { KernelError } from "../../linux/kernel-error.ts";
import { closeNetlinkSocket, type SocketOpener } from "../../linux/netlink-socket.ts";
import { listLinks } from "../../linux/rtnetlink/link.ts";
import { listHostRoutes } from "../../linux/rtnetlink/route.ts";
import { withRouteSocket } from "../../linux/rtnetlink/route-socket.ts";

export interface AdoptedFloating {
  readonly hostInterface: string;
  readonly pairs: readonly FloatingAddress[];
}

/** For a log. */
export function describeAdopted({ pairs }: Pick<AdoptedFloating, "pairs">, owner: string): string {
  const texts = pairs.map(({ external, internal }) => `${formatAddress(external)} -> ${formatAddress(internal)}`);
  return `Adopted from a former release: floating IP ${texts.join(", ")} of ${owner}`;
}

/** Records what the kernel leads to pods without a record. */
export function adoptFloating(folder: FileFolder, kernel: SocketOpener): readonly AdoptedFloating[] {
  const floating = floatingIn(kernel);
  if (floating.length === 0) return [];
  const { links, routes } = withRouteSocket(kernel, (socket) => ({
    links: listLinks(socket),
    routes: listHostRoutes(socket),
  }));
  const adopted: AdoptedFloating[] = [];
  for (const { name, alias: mark, index } of links) {
    const pairs = floating.filter(({ internal }) =>
      routes.some(({ destination, linkIndex }) => linkIndex === index && isSameAddress(destination.network, internal)),
    );
    if (mark === undefined || pairs.length === 0) continue;
    // The record of an earlier container of the pod: a former release does not remove it.
    if (readAttachment(folder, name)?.mark === mark) continue;
    writeAttachment(folder, name, {
      mark,
      // The kernel does not know it: the name of the interface is that of one pod.
      pod: undefined,
      addresses: [],
      floating: pairs.map(({ internal, external }) => ({
        internalIP: formatAddress(internal),
        externalIP: formatAddress(external),
      })),
      sourcePrefixes: [],
    });
    adopted.push({ hostInterface: name, pairs });
  }
  return adopted;
}

/** None with a kernel without nftables. */
function floatingIn(kernel: SocketOpener): readonly FloatingAddress[] {
  const socket = kernel.openSocket("netfilter");
  try {
    return readFloatingWithoutRecords(socket);
  } catch (failure) {
    if (failure instanceof KernelError) return [];
    throw failure;
  } finally {
    closeNetlinkSocket(socket);
  }
}
