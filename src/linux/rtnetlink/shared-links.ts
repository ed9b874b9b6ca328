/** For an agent that stays: links that calls remove at the same time are removed together, in the background. */
import type { LinkAccess } from "./link-access.ts";
import { openLinkRemoval, type RemovalMeans } from "./link-removal.ts";

export function shareLinks(means: RemovalMeans): LinkAccess {
  const removal = openLinkRemoval(means);
  return { remove: (_socket, link) => removal.remove(link), removal: async () => removal };
}
