/**
 * The records of an attachment in the datastore: its addresses, its endpoint, and
 * the profile of its network. With our own IPAM all are read and committed
 * together, in two round trips, or one if the datastore remembers what was read.
 * With another IPAM plugin only endpoint and profile are recorded here.
 */
import { EMPTY_RESULT } from "../cni/result.ts";
import type { Change, Entry, Wanted } from "../datastore/datastore.ts";
import { identity } from "../identity.ts";
import { type Address, formatAddress, parseAddress } from "../ip/address.ts";
import { releaseFields } from "../ipam/allocator.ts";
import { KeptInUse } from "../ipam/assign/kept-address.ts";
import { assignedRequest, assignRequest, type ReleaseEvidence, releaseRequest } from "../ipam/attachment.ts";
import { readyForAssigning, readyForReleasing, WANTED_CLUSTER } from "../ipam/cluster.ts";
import { settle } from "../ipam/commit-loop.ts";
import { requireOwnNodeEntry, wantedNode } from "../ipam/node-machine.ts";
import { assignmentFields, type KeptUse, poolWarnings, type ReleaseHandleRequest } from "../ipam/request.ts";
import { thisMachine } from "../ipam/session.ts";
import type { AddRequest, IpamResult } from "./add-request.ts";
import { annotatedRequests } from "./annotated-requests.ts";
import { type EndpointSources, endpointChanges, endpointOf, profileChanges, profileKey } from "./endpoint.ts";
import { keepRequestOf, keptUseOf, undoOfKept } from "./kept-identity.ts";
import { logAnnouncements } from "./log-announcements.ts";
import type { PodFacts } from "./pod-facts.ts";
import type { Session } from "./session.ts";
import { endpointRemoval, ownerGuard, readStoredEndpoint } from "./stored-endpoint.ts";
import type { Workload } from "./workload.ts";

/** Assigns the addresses and records the endpoint, all or nothing. */
export async function registerWithOwnIpam(
  { workload, args, requested, podFacts, found, requireContainer }: AddRequest,
  session: Session,
): Promise<IpamResult> {
  const { ipam } = session.config;
  const allocator = await session.allocator();
  const onLink = found.kind === "own-links" ? found.addresses : [];
  const annotated = annotatedRequests(podFacts.requests);
  const { namespaceLabels } = podFacts;
  const keep = keepRequestOf(workload, podFacts);
  const request = assignRequest(workload, {
    ...{ ipam, args, requested, annotated, onLink, ...thisMachine(session) },
    ...(namespaceLabels === undefined ? {} : { namespaceLabels }),
    ...(keep === undefined ? {} : { keep }),
  });
  const renewsHeld = found.kind === "nothing";
  const requireOwner = ownerGuard(workload);
  const assign = () =>
    allocator.assign(
      { ...request, renewsHeld },
      {
        wanted: wantedRecords(workload, session, podFacts),
        check: ([cluster]) => void readyForAssigning(cluster, session),
        changes: (answers, planned) => {
          requireContainer();
          requireOwner(answers[1]?.[0]);
          const addresses = planned.addresses.map(({ address }) => address);
          return recordChanges({ workload, podFacts, addresses }, answers, session);
        },
      },
    );
  const assignment = await assign().catch(async (failure: unknown) => {
    if (failure instanceof KeptInUse && (await hasEnded(failure, session))) return assign();
    throw failure;
  });
  const { addresses, pools } = assignment;
  const renamed = addresses.filter(({ formerNode }) => formerNode !== undefined).map(({ address }) => address);
  if (renamed.length > 0) await removeEndpointOfFormerNode(workload, session, renamed);
  for (const message of poolWarnings(assignment)) session.log.warning(message);
  logAnnouncements(podFacts.requests, pools, session);
  session.note(assignmentFields(assignment));
  const { routes, dns } = EMPTY_RESULT;
  const kept = undoOfKept(workload, assignment);
  return {
    ...{ addresses: addresses.map(({ address }) => address), routes, dns, pools },
    ...(kept === undefined ? {} : { kept }),
  };
}

/** Rarely needed, and loaded only then. */
async function hasEnded(failure: KeptInUse, session: Session): Promise<boolean> {
  if (failure.uses.length === 0 || failure.uses.some(({ node }) => node !== session.node)) return false;
  const { endFormerUse } = await import("./end-former-use.ts");
  return endFormerUse(failure, session);
}

/** Throws if the endpoint could not be recorded, before another plugin assigns addresses. */
export async function requireUsable(session: Session): Promise<void> {
  const { answers } = await (await session.store()).read([WANTED_CLUSTER, wantedNode(session.node)]);
  readyForAssigning(answers[0], session);
  requireOwnNodeEntry(answers[1], thisMachine(session));
}

/** Records the endpoint with addresses that are not from our own IPAM. */
export async function record(
  { requireContainer, ...sources }: EndpointSources & Pick<AddRequest, "requireContainer">,
  session: Session,
): Promise<void> {
  const { workload } = sources;
  const wanted = wantedRecords(workload, session, sources.podFacts);
  const requireOwner = ownerGuard(workload);
  await settle(
    await session.store(),
    {
      action: `record endpoint "${workload.endpointName}"`,
      first: () => wanted,
      decide: (facts) => {
        requireContainer();
        const answers = wanted.map((each) => facts.answer(each) ?? []);
        requireOwner(answers[1]?.[0]);
        return { kind: "commit", changes: recordChanges(sources, answers, session), outcome: undefined };
      },
    },
    session.surroundings,
  );
}

/** What the removed endpoint had. */
interface Removed {
  /** Sources beside its addresses. */
  readonly allowedSources: boolean;
  /** Of the endpoint, if there was one. */
  readonly labels: Readonly<Record<string, string>> | undefined;
  /** By our own IPAM. */
  readonly addresses: readonly Address[];
}

/** For DEL: releases all addresses of the attachment and removes its endpoint. */
export function unregister(workload: Workload, session: Session, evidence: ReleaseEvidence): Promise<Removed> {
  const isDelegated = session.config.ipam.type !== identity.ipamType;
  const delegated = isDelegated && evidence.hadLink ? evidence.results : [];
  const kept = { ...keptUseOf(workload, evidence), ending: noteKept(session) };
  const request = isDelegated ? releaseRequest(workload, evidence) : { ...releaseRequest(workload, evidence), kept };
  return release(request, workload, {
    session,
    delegated: delegated.flatMap((text) => parseAddress(text) ?? []),
  });
}

/** For the log: they stay with the pod. */
function noteKept(session: Session) {
  return (addresses: readonly Address[]) => session.note({ kept: addresses.map(formatAddress) });
}

/** After a failed ADD: releases the addresses it assigned, but no older ones, and removes the endpoint. */
export async function undoRegistration(workload: Workload, session: Session, kept?: KeptUse): Promise<void> {
  const request = assignedRequest(workload);
  await release(kept === undefined ? request : { ...request, kept }, workload, { session, delegated: [] });
}

/** In one commit. `delegated`: addresses of this host's link that another IPAM plugin had assigned. */
async function release(
  request: ReleaseHandleRequest,
  workload: Workload,
  { session, delegated }: { readonly session: Session; readonly delegated: readonly Address[] },
): Promise<Removed> {
  let found: Entry | undefined;
  const allocator = await session.allocator();
  const released = await allocator.releaseHandle(request, {
    wanted: [WANTED_CLUSTER, { kind: "key", key: workload.endpointKey }],
    // If only the first changes are written, the remaining addresses lead a later DEL or GC here again; an endpoint would not.
    order: "before",
    changes: ([cluster, endpoint]) => {
      const ready = readyForReleasing(cluster);
      const present = endpoint?.[0];
      // Gone if an earlier attempt was written in part.
      found = present ?? found;
      return [...ready, ...endpointRemoval(workload, present)];
    },
  });
  if (session.config.ipam.type === identity.ipamType) session.note(await releaseFields(allocator, released));
  else session.note({ addresses: recordedAddresses(workload, found), ipam: session.config.ipam.type });
  const addresses = [...released, ...delegated];
  if (addresses.length > 0 && found === undefined) await removeEndpointOfFormerNode(workload, session, addresses);
  return {
    allowedSources: found?.value.includes('"allowSpoofedSourcePrefixes"') ?? false,
    labels: labelsOf(workload, found),
    addresses: released,
  };
}

/** A pod has its own. */
function labelsOf(workload: Workload, entry: Entry | undefined): Removed["labels"] {
  if (workload.pod !== undefined || entry === undefined) return undefined;
  return endpointRemoval(workload, entry).length === 0 ? undefined : readStoredEndpoint(entry).labels;
}

/** Rarely needed, and loaded only then. */
async function removeEndpointOfFormerNode(
  workload: Workload,
  session: Session,
  addresses: readonly Address[],
): Promise<void> {
  if (isPod(session)) return;
  const { removeEndpointOfFormerNode: remove } = await import("./former-node.ts");
  await remove(workload, session, addresses);
}

/** For the log: with another IPAM plugin only the endpoint names the addresses. */
function recordedAddresses(workload: Workload, entry: Entry | undefined): readonly string[] {
  if (entry === undefined || endpointRemoval(workload, entry).length === 0) return [];
  return readStoredEndpoint(entry).ipNetworks.map((network) => network.split("/")[0] ?? "");
}

/**
 * In the orchestrator's API an endpoint is its pod: it does not depend on the name of the node, and its profiles are those of
 * its namespace and service account.
 */
function isPod({ settings }: Session): boolean {
  return settings.kind === "orchestrator";
}

function wantedRecords({ endpointKey, network }: Workload, session: Session, { pod }: PodFacts): readonly Wanted[] {
  const endpoint = { kind: "key", key: endpointKey } as const;
  if (isPod(session)) return [WANTED_CLUSTER, pod === undefined ? endpoint : { ...endpoint, seen: pod }];
  return [WANTED_CLUSTER, endpoint, { kind: "key", key: profileKey(network) }];
}

function recordChanges(
  sources: EndpointSources,
  [cluster, endpoint, profile]: readonly (readonly Entry[])[],
  session: Session,
): readonly Change[] {
  const { workload } = sources;
  const stamp = { uid: session.surroundings.uuid, now: session.surroundings.now };
  return [
    ...readyForAssigning(cluster, session),
    ...(isPod(session) ? [] : profileChanges(workload, profile?.[0], stamp)),
    ...endpointChanges(
      {
        wanted: endpointOf({ ...sources, labels: workload.labels ?? session.config.labels }, stamp),
        labels: sources.podFacts.endpoint === undefined ? "of the config" : "of the pod",
        whenEqual: isPod(session) ? "expect" : "write",
      },
      workload.endpointKey,
      endpoint?.[0],
    ),
  ];
}
