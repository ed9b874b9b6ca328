/**
 * Removes links of the host, for which the caller has to wait for the kernel. A
 * process that ends with its call waits; an agent that stays does not
 * (shared-links.ts).
 */
import { isKernelError, type KernelError } from "../kernel-error.ts";
import { attempt, type NetlinkSocket, ownSockets } from "../netlink-socket.ts";
import { deleteLink } from "./link.ts";
import type { KnownLink, LinkRemoval, RemovalMeans } from "./link-removal.ts";

export interface LinkAccess {
  /**
   * For a caller with a single link and a socket to its namespace, which is the host's. Returns why the kernel
   * refused; a link that is already gone is not a refusal.
   */
  remove(socket: NetlinkSocket, link: KnownLink): Promise<KernelError | undefined>;
  /** For a caller with many links of the host. */
  removal(): Promise<LinkRemoval>;
}

/** For a process that ends with its call. */
export function linksOf(means: RemovalMeans): LinkAccess {
  return {
    async remove(socket, link) {
      const [refusal] = attempt(socket, [deleteLink(link)]);
      return isKernelError(refusal, "ENODEV") ? undefined : refusal;
    },
    removal: async () => (await import("./link-removal.ts")).openLinkRemoval(means),
  };
}

export const OWN_REMOVAL: RemovalMeans = { kernel: ownSockets, random: Math.random, wait: Bun.sleep };

export const directLinks = linksOf(OWN_REMOVAL);
