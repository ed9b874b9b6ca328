/**
 * Ends the use of kept addresses by a former container of this host, as its search for leaks would: the host has no link of
 * that container, and no ADD of it can be in progress. A DEL that was lost then does not keep the next pod waiting.
 */
import type { Datastore } from "../datastore/datastore.ts";
import { trackedConnections } from "../firewall/tracked-connections.ts";
import type { KeptInUse } from "../ipam/assign/kept-address.ts";
import { findLeaks, splitBySince } from "../ipam/leaks/find.ts";
import { bootedAt, readLinks } from "../ipam/leaks/host-links.ts";
import { requireOwnNodeEntry, requireRegisteredByThis, wantedNode } from "../ipam/node-machine.ts";
import { guarded } from "../ipam/request.ts";
import { thisMachine } from "../ipam/session.ts";
import type { Session } from "./session.ts";

/** Whether all of them wait by now. */
export async function endFormerUse({ uses }: KeptInUse, session: Session): Promise<boolean> {
  const { host, now } = session.surroundings;
  if (uses.some(({ node }) => node !== session.node)) return false;
  const since = await ownSince(await session.store(), session);
  if (since === undefined) return false;
  const { certain } = splitBySince(uses, since);
  const leaks = findLeaks(certain, { links: { ...readLinks(host.kernel), bootedAt: bootedAt() }, now: now() });
  if (leaks.length < uses.length) return false;
  const tracked = await trackedConnections(host.netfilter, (message) => session.log.warning(message));
  await tracked?.forget(uses.map(({ address }) => address));
  const { refused } = await (await session.allocator()).releaseAddresses(uses.map(guarded), "all or none");
  for (const { reason, allocation } of leaks) {
    session.log.warning(`The use of a kept address by container "${allocation.containerId}" has ended: ${reason}`);
  }
  return refused.length === 0;
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
