/**
 * Ends the use of kept addresses by a former container of this host, as its search for leaks would, with its endpoint: the
 * host has no link of that container, and no ADD of it can be in progress. A DEL that was lost then does not keep the next
 * pod waiting.
 */
import type { Datastore } from "../datastore/datastore.ts";
import { trackedConnections } from "../firewall/tracked-connections.ts";
import type { KeptInUse } from "../ipam/assign/kept-address.ts";
import { findLeaks, splitBySince } from "../ipam/leaks/find.ts";
import { bootedAt, readLinks } from "../ipam/leaks/host-links.ts";
import { endpointsOf } from "../ipam/leaks/live-view.ts";
import { releaseLeaks } from "../ipam/leaks/release.ts";
import { requireOwnNodeEntry, requireRegisteredByThis, wantedNode } from "../ipam/node-machine.ts";
import { thisMachine } from "../ipam/session.ts";
import type { Session } from "./session.ts";

/** Whether all of them wait by now. */
export async function endFormerUse({ uses }: KeptInUse, session: Session): Promise<boolean> {
  const { host, now } = session.surroundings;
  if (uses.some(({ node }) => node !== session.node)) return false;
  const store = await session.store();
  const since = await ownSince(store, session);
  if (since === undefined) return false;
  const { certain } = splitBySince(uses, since);
  const leaks = findLeaks(certain, { links: { ...readLinks(host.kernel), bootedAt: bootedAt() }, now: now() });
  if (leaks.length < uses.length) return false;
  const tracked = await trackedConnections(host.netfilter, (message) => session.log.warning(message));
  const released = await releaseLeaks(
    leaks,
    { endpoints: await endpointsOf(uses, store) },
    {
      ...{ store, allocator: await session.allocator(), rule: "all or none" },
      forget: async (addresses) => tracked?.forget(addresses),
    },
  );
  if (released.length < uses.length) return false;
  for (const { reason, allocation } of leaks) {
    session.log.warning(`The use of a kept address by container "${allocation.containerId}" has ended: ${reason}`);
  }
  return true;
}

/** Since when the node is this machine; what was assigned earlier may be in use on another one. */
async function ownSince(store: Datastore, session: Session): Promise<Date | undefined> {
  const { answers } = await store.read([wantedNode(session.node)]);
  try {
    if (session.settings.kind !== "embedded") return requireRegisteredByThis(answers[0], thisMachine(session));
    requireOwnNodeEntry(answers[0], thisMachine(session));
    return new Date(0);
  } catch {
    return undefined;
  }
}
