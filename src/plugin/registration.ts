/**
 * What the datastore holds of an attachment: its addresses, its endpoint, and
 * the profile of its network. With our own IPAM all of it is read together and
 * committed together, two round trips in all, one where the datastore remembers;
 * with another IPAM plugin the addresses are that one's, and only the rest is ours.
 */
import { EMPTY_RESULT } from "../cni/result.ts";
import type { Change, Datastore, Entry, Wanted } from "../datastore/datastore.ts";
import { MOST_IN_ONE_REQUEST } from "../datastore/preconditions.ts";
import type { Address } from "../ip/address.ts";
import type { Allocator } from "../ipam/allocator.ts";
import { requireReady, WANTED_CLUSTER } from "../ipam/cluster.ts";
import { settle } from "../ipam/commit-loop.ts";
import type { FormerHandle } from "../ipam/former-handle.ts";
import { openHostAllocator } from "../ipam/host-allocator.ts";
import type { Session as IpamSession } from "../ipam/plugin/session.ts";
import type { Wish } from "../ipam/request.ts";
import { resourcesPrefix } from "../model/keys.ts";
import type { Given } from "./attachment.ts";
import { endpointChanges, endpointOf, profileChanges, profileKey } from "./endpoint.ts";
import type { Session } from "./session.ts";
import { readStoredEndpoint } from "./stored-endpoint.ts";
import type { Workload } from "./workload.ts";

/** Takes the addresses and records the endpoint, all or nothing. */
export async function registerWithOwnIpam(
  workload: Workload,
  wishes: readonly Wish[],
  session: Session,
): Promise<Given> {
  const allocator = allocatorOn(await session.store(), session);
  const { addresses } = await allocator.assign(
    { ...ownerOf(workload), node: workload.node, attributes: attributesOf(workload), intendedUse: "Workload", wishes },
    {
      wanted: wantedRecords(workload),
      check: ([cluster]) => void clusterChanges(cluster, session),
      changes: (answers, planned) =>
        recordChanges(
          workload,
          planned.addresses.map(({ address }) => address),
          answers,
          session,
        ),
    },
  );
  const { routes, dns } = EMPTY_RESULT;
  return { addresses: addresses.map(({ address }) => address), routes, dns };
}

/** Refuses, before anything is taken elsewhere, where the endpoint could not be recorded. */
export async function requireUsable(session: Session): Promise<void> {
  const { answers } = await (await session.store()).read([WANTED_CLUSTER]);
  clusterChanges(answers[0], session);
}

/** Records the endpoint of addresses that another IPAM plugin gave. */
export async function record(workload: Workload, addresses: readonly Address[], session: Session): Promise<void> {
  const wanted = wantedRecords(workload);
  await settle(
    await session.store(),
    {
      action: `record endpoint "${workload.endpointName}"`,
      first: () => wanted,
      decide: (facts) => {
        const answers = wanted.map((each) => facts.answer(each) ?? []);
        return { kind: "commit", changes: recordChanges(workload, addresses, answers, session), outcome: undefined };
      },
    },
    session.surroundings,
  );
}

export interface UnregisterOptions {
  /** The addresses that are probably held. */
  readonly likely?: readonly string[];
  /** Whether to release what an older release assigned, too: DEL does, undoing an ADD does not. */
  readonly former?: FormerHandle | undefined;
}

/** Releases the addresses and removes the endpoint, in one commit. */
export async function unregister(
  workload: Workload,
  session: Session,
  { likely = [], former }: UnregisterOptions = {},
): Promise<void> {
  const store = await session.store();
  let isFound = false;
  const released = await allocatorOn(store, session).releaseHandle(
    { ...ownerOf(workload), ...(former && { former }), node: workload.node, likely },
    {
      wanted: [WANTED_CLUSTER, { kind: "key", key: workload.endpointKey }],
      changes: ([cluster, endpoint]) => {
        isFound = endpoint?.[0] !== undefined;
        return [
          // A bare datastore holds nothing that could be given back.
          ...requireReady(cluster, { whenBare: "accept", now: session.surroundings.now(), uid: "" }),
          ...endpointRemoval(workload, endpoint?.[0]),
        ];
      },
    },
  );
  if (released.length > 0 && !isFound) await removeEndpointOfFormerNode(workload, store);
}

/** Addresses and no endpoint: the node was called otherwise when it was recorded, and the name of an endpoint holds that of its node. */
async function removeEndpointOfFormerNode(workload: Workload, store: Datastore): Promise<void> {
  const { pagesBelow } = await import("../datastore/pages.ts");
  const prefix = resourcesPrefix("workloadendpoints", workload.namespace);
  for await (const { entries } of pagesBelow(store, prefix, { size: MOST_IN_ONE_REQUEST })) {
    const changes = entries
      .filter(({ value }) => value.includes(workload.containerId))
      .flatMap((entry) => endpointRemoval(workload, entry));
    if (changes.length > 0) await store.commit(changes);
  }
}

/** The endpoint of a newer sandbox of the same pod bears the same name, and so would that of another network: both stay. */
function endpointRemoval(workload: Workload, held: Entry | undefined): readonly Change[] {
  if (held === undefined) return [];
  const { containerId, ifname, network } = readStoredEndpoint(held);
  if (containerId !== workload.containerId) return [];
  if ((ifname ?? workload.ifname) !== workload.ifname || (network ?? workload.network) !== workload.network) return [];
  return [{ kind: "delete", key: held.key, revision: held.revision }];
}

function wantedRecords({ endpointKey, network }: Workload): readonly Wanted[] {
  return [WANTED_CLUSTER, { kind: "key", key: endpointKey }, { kind: "key", key: profileKey(network) }];
}

function recordChanges(
  workload: Workload,
  addresses: readonly Address[],
  [cluster, endpoint, profile]: readonly (readonly Entry[])[],
  session: Session,
): readonly Change[] {
  const birth = { uid: session.surroundings.uuid, now: session.surroundings.now };
  return [
    ...clusterChanges(cluster, session),
    ...profileChanges(workload, profile?.[0], birth),
    ...endpointChanges(endpointOf(workload, addresses, birth), workload.endpointKey, endpoint?.[0]),
  ];
}

function clusterChanges(cluster: readonly Entry[] | undefined, { settings, surroundings }: Session): readonly Change[] {
  const whenBare = settings.kind === "embedded" ? "create" : "refuse";
  return requireReady(cluster, { whenBare, now: surroundings.now(), uid: surroundings.uuid() });
}

export function allocatorOn(store: Datastore, { settings, node, log, surroundings }: Session): Allocator {
  return openHostAllocator(store, surroundings, { node, settings, warn: (message) => log.warning(message) });
}

export function ownerOf({ handle, network, ifname }: Workload) {
  return { handle, network, interface: ifname };
}

function attributesOf({ pod, namespace }: Workload): Readonly<Record<string, string>> {
  return pod === undefined ? {} : { pod, namespace };
}

/** What the IPAM plugin's own commands work with: they run in this process. */
export async function ipamSessionOf(session: Session): Promise<IpamSession> {
  const store = await session.store();
  return { ...session, store, allocator: allocatorOn(store, session) };
}
