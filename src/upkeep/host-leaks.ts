/** Compares the addresses that are recorded for a node with this host. Changes nothing. */
import type { Datastore } from "../datastore/datastore.ts";
import type { Prefix } from "../ip/prefix.ts";
import type { Borrowing } from "../ipam/leaks/borrowings.ts";
import { confirmUnseen } from "../ipam/leaks/confirm-unseen.ts";
import { findLeaks, findUnseen, type Leak, splitBySince } from "../ipam/leaks/find.ts";
import type { HostLinks } from "../ipam/leaks/host-links.ts";
import { endpointsOf, type LiveObjects } from "../ipam/leaks/live-view.ts";
import { type BlockRecords, type NodeRecords, readBlockRecords, readNodeRecords } from "../ipam/leaks/node-records.ts";
import { requireOwnNodeEntry, requireRegisteredByThis, wantedNode } from "../ipam/node-machine.ts";
import type { HostMeans } from "./host-means.ts";

export interface RegisteredHost {
  readonly node: string;
  /** Only this host uses an embedded datastore. */
  readonly isEmbedded: boolean;
}

export interface HostSearch extends RegisteredHost {
  readonly links: HostLinks;
  /** What to do with addresses that were assigned before this machine registered the node. */
  readonly earlier: "judge" | "keep";
  /** Absent if the claims of the node can be listed without those of others. */
  readonly claims?: KnownClaims | undefined;
  /** Of the orchestrator, for addresses that the host alone cannot judge; `undefined` if its API is not configured. */
  readonly openObjects?: (() => Promise<LiveObjects | undefined>) | undefined;
}

/** Which blocks a node claims, or has or had addresses in, as its agent knows them. */
export interface KnownClaims {
  blocks(): readonly Prefix[];
  /** Those that may no longer be needed. */
  borrowings(): Promise<readonly Borrowing[]>;
}

export interface SearchMeans extends Pick<HostMeans, "machineIdentity" | "now"> {
  /** In the network namespaces of all processes of the host, without lengths; `undefined` if those cannot be seen. */
  readonly containerAddresses: () => Promise<ReadonlySet<string> | undefined>;
}

export interface HostLeaks {
  readonly records: BlockRecords;
  readonly leaks: readonly Leak[];
  /** Those of the leaks, if not more, by their keys. */
  readonly endpoints: NodeRecords["endpoints"];
  /** How many addresses look leaked, but may be another machine's. */
  readonly unjudged: number;
  /** Why the orchestrator could not be asked about some of them. */
  readonly failure?: unknown;
}

const FIRST_MOMENT = new Date(0);

/** What was recorded before this moment may be another machine's. Fails if the node itself may be. */
export async function registeredSince(
  store: Datastore,
  { node, isEmbedded }: RegisteredHost,
  { machineIdentity }: Pick<SearchMeans, "machineIdentity">,
): Promise<Date> {
  const machine = await machineIdentity();
  const { answers } = await store.read([wantedNode(node)]);
  const own = { node, machineIdentity: () => machine };
  if (!isEmbedded) return requireRegisteredByThis(answers[0], own);
  requireOwnNodeEntry(answers[0], own);
  return FIRST_MOMENT;
}

/** Fails if the node may be another machine's. */
export async function searchHost(
  store: Datastore,
  { node, isEmbedded, links, earlier, claims, openObjects }: HostSearch,
  means: SearchMeans,
): Promise<HostLeaks> {
  const since = await registeredSince(store, { node, isEmbedded }, means);
  const records = await readRecords(store, { node, claims });
  const evidence = { links, now: means.now() };
  const judged = splitBySince(records.allocations, earlier === "judge" ? FIRST_MOMENT : since);
  const unseen = findUnseen(records.allocations, new Set(judged.earlier), evidence);
  const { confirmed, ...failed } = await askOrchestrator(unseen, { store, openObjects, means });
  const known = new Set(confirmed.map(({ allocation }) => allocation));
  const leaks = [...findLeaks(judged.certain, evidence), ...confirmed];
  const leaked = leaks.map(({ allocation }) => allocation);
  return {
    records,
    leaks,
    // What an ADD has written since, the blocks tell: they are read again before an endpoint is deleted.
    endpoints: records.endpoints ?? (await endpointsOf(leaked, store)),
    unjudged: findLeaks(judged.earlier, evidence).filter(({ allocation }) => !known.has(allocation)).length,
    ...failed,
  };
}

export function readRecords(
  store: Datastore,
  { node, claims }: Pick<HostSearch, "node" | "claims">,
): Promise<BlockRecords & Partial<NodeRecords>> {
  return claims === undefined ? readNodeRecords(store, node) : readBlockRecords(store, node, claims.blocks());
}

interface Asking extends Pick<HostSearch, "openObjects"> {
  readonly store: Datastore;
  readonly means: Pick<SearchMeans, "containerAddresses">;
}

/** An API that cannot be reached does not keep what the host itself can judge. */
async function askOrchestrator(
  unseen: ReturnType<typeof findUnseen>,
  { store, openObjects, means: { containerAddresses } }: Asking,
): Promise<{ readonly confirmed: readonly Leak[]; readonly failure?: unknown }> {
  if (unseen.length === 0) return { confirmed: [] };
  try {
    const objects = await openObjects?.();
    if (objects === undefined) return { confirmed: [] };
    return { confirmed: await confirmUnseen(unseen, { store, ...objects, containerAddresses }) };
  } catch (failure) {
    return { confirmed: [], failure };
  }
}
