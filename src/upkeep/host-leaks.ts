/** Compares the addresses that are recorded for a node with this host. Changes nothing. */
import type { Datastore } from "../datastore/datastore.ts";
import { confirmUnseen } from "../ipam/leaks/confirm-unseen.ts";
import { findLeaks, findUnseen, type Leak, splitBySince } from "../ipam/leaks/find.ts";
import type { HostLinks } from "../ipam/leaks/host-links.ts";
import type { LiveObjects } from "../ipam/leaks/live-view.ts";
import { type NodeRecords, readNodeRecords } from "../ipam/leaks/node-records.ts";
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
  /** Of the orchestrator, for addresses that the host alone cannot judge; `undefined` if its API is not configured. */
  readonly openObjects?: (() => Promise<LiveObjects | undefined>) | undefined;
}

export interface SearchMeans extends Pick<HostMeans, "machineIdentity" | "now"> {
  /** In the network namespaces of all processes of the host, without lengths; `undefined` if those cannot be seen. */
  readonly containerAddresses: () => Promise<ReadonlySet<string> | undefined>;
}

export interface HostLeaks {
  readonly records: NodeRecords;
  readonly leaks: readonly Leak[];
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
  { node, isEmbedded, links, earlier, openObjects }: HostSearch,
  means: SearchMeans,
): Promise<HostLeaks> {
  const since = await registeredSince(store, { node, isEmbedded }, means);
  const records = await readNodeRecords(store, node);
  const evidence = { links, now: means.now() };
  const judged = splitBySince(records.allocations, earlier === "judge" ? FIRST_MOMENT : since);
  const unseen = findUnseen(records.allocations, new Set(judged.earlier), evidence);
  const { confirmed, ...failed } = await askOrchestrator(unseen, { store, openObjects, means });
  const known = new Set(confirmed.map(({ allocation }) => allocation));
  return {
    records,
    leaks: [...findLeaks(judged.certain, evidence), ...confirmed],
    unjudged: findLeaks(judged.earlier, evidence).filter(({ allocation }) => !known.has(allocation)).length,
    ...failed,
  };
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
