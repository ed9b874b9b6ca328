/**
 * Floating IPs of pods that a former release has connected: it recorded nothing on the host, so what its agent has left in the
 * kernel is recorded here once, when the first agent of this release starts after a boot of the host. It counts only while
 * floating IPs are switched on, and until the pod is connected again.
 */
import { readFloatingTable } from "../../firewall/apply-floating.ts";
import { formatAddress, isSameAddress } from "../../ip/address.ts";
import { writeAttachment } from "../../ipam/attachment-record.ts";
import type { FileFolder } from "../../linux/file-folder.ts";
import { KernelError } from "../../linux/kernel-error.ts";
import { closeNetlinkSocket, type SocketOpener } from "../../linux/netlink-socket.ts";
import { listLinks } from "../../linux/rtnetlink/link.ts";
import { listHostRoutes } from "../../linux/rtnetlink/route.ts";
import { withRouteSocket } from "../../linux/rtnetlink/route-socket.ts";

/** Shows that it was done. Not the name of an interface. */
const DONE = ".adopted";

/** Returns the number of pods with floating IPs that were found. */
export function adoptFloating(folder: FileFolder, kernel: SocketOpener): number {
  const present = folder.list();
  if (present.includes(DONE)) return 0;
  const floating = floatingIn(kernel);
  const { links, routes } = withRouteSocket(kernel, (socket) => ({
    links: floating.length === 0 ? [] : listLinks(socket),
    routes: floating.length === 0 ? [] : listHostRoutes(socket),
  }));
  const adopted = links.flatMap(({ name, alias: mark, index }) => {
    const pairs = floating.filter(({ internal }) =>
      routes.some(({ destination, linkIndex }) => linkIndex === index && isSameAddress(destination.network, internal)),
    );
    return mark === undefined || pairs.length === 0 || present.includes(name) ? [] : [{ name, mark, pairs }];
  });
  for (const { name, mark, pairs } of adopted) {
    writeAttachment(folder, name, {
      mark,
      // The kernel does not know them: the name of the interface is that of one pod.
      pod: undefined,
      addresses: [],
      floating: pairs.map(({ internal, external }) => ({
        internalIP: formatAddress(internal),
        externalIP: formatAddress(external),
      })),
      sourcePrefixes: [],
    });
  }
  folder.write(DONE, "");
  return adopted.length;
}

/** None with a kernel without nftables. */
function floatingIn(kernel: SocketOpener): ReturnType<typeof readFloatingTable> {
  const socket = kernel.openSocket("netfilter");
  try {
    return readFloatingTable(socket);
  } catch (failure) {
    if (failure instanceof KernelError) return [];
    throw failure;
  } finally {
    closeNetlinkSocket(socket);
  }
}
