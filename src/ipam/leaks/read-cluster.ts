/** Reads all that a search for leaks in the whole cluster needs, page by page. */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { type ReadEach, readEach, type Unreadable } from "../../datastore/read-each.ts";
import { ALL_AFFINITIES_PREFIX, ALL_BORROWED_PREFIX, blocksPrefix, resourceKey } from "../../model/keys.ts";
import { ENDPOINT, NODE, POOL } from "../../model/kinds.ts";
import type { Node } from "../../model/node.ts";
import { POD_RECORDS_PREFIX, type PodRecord, readPodRecord } from "../../model/pod-record.ts";
import { decodeBlock, decodePool } from "../records.ts";
import { borrowingOf, type ClusterRecords, claimOf, type EndpointRecord } from "./cluster-records.ts";
import { nameInOrchestrator } from "./node-names.ts";

interface ClusterSources {
  readonly store: Datastore;
  /** The orchestrator's objects, as `orchestratorMapping()` converts them. */
  readonly orchestrator: Datastore;
  /** Whether endpoints are records of their own; on the orchestrator's API they are its pods. */
  readonly hasEndpointRecords: boolean;
}

export interface ReadCluster {
  readonly records: ClusterRecords;
  readonly unreadable: readonly Unreadable[];
}

/** The addresses first: a pod that starts meanwhile is known before it is asked for. */
export async function readCluster({ store, orchestrator, hasEndpointRecords }: ClusterSources): Promise<ReadCluster> {
  const list = async <Value>(
    from: Datastore,
    prefix: string,
    read: (entry: Entry) => Value | undefined,
  ): Promise<ReadEach<Value>> => readEach(await readAllEntries(from, prefix), read);
  const blocks4 = await list(store, blocksPrefix(4), decodeBlock);
  const blocks6 = await list(store, blocksPrefix(6), decodeBlock);
  const claims = await list(store, ALL_AFFINITIES_PREFIX, claimOf);
  const borrowings = await list(store, ALL_BORROWED_PREFIX, borrowingOf);
  const pools = await list(store, POOL.prefix(), decodePool);
  const nodes = await list(
    store,
    NODE.prefix(),
    (entry) => [entry.key, NODE.codec.read(entry.value, entry.key)] as const,
  );
  const endpoints = hasEndpointRecords ? await list(store, ENDPOINT.prefix(), endpointOf) : NONE;
  const pods = await list(orchestrator, POD_RECORDS_PREFIX, podOf);
  const known = await readAllEntries(orchestrator, NODE.prefix());
  const unreadable = [blocks4, blocks6, claims, pools, nodes, endpoints].flatMap((each) => each.unreadable);
  const records = new Map<string, Node | "unreadable">([
    ...nodes.unreadable.map(({ key }) => [key, "unreadable"] as const),
    ...nodes.readable,
  ]);
  return {
    records: {
      pools: pools.readable,
      blocks: [...blocks4.readable, ...blocks6.readable],
      claims: claims.readable,
      borrowings: borrowings.readable,
      endpoints: endpoints.readable,
      view: viewOf({ nodes: records, endpoints: endpoints.readable, pods: pods.readable, known }),
    },
    unreadable,
  };
}

const NONE: ReadEach<EndpointRecord> = { readable: [], unreadable: [] };

function endpointOf({ key, revision, value }: Entry): EndpointRecord {
  return { key, revision, spec: ENDPOINT.codec.read(value, key).spec };
}

function podOf({ key, value }: Entry): readonly [string, PodRecord] {
  return [key, readPodRecord(value, key)];
}

function viewOf(of: {
  readonly nodes: ReadonlyMap<string, Node | "unreadable">;
  readonly endpoints: readonly EndpointRecord[];
  readonly pods: readonly (readonly [string, PodRecord])[];
  readonly known: readonly Entry[];
}): ClusterRecords["view"] {
  const pods = new Map(of.pods);
  const known = new Set(of.known.map(({ key }) => key));
  const containers = new Map(of.endpoints.map(({ key, spec }) => [key, spec.containerID]));
  return {
    podAt: (key) => pods.get(key),
    nodeNamed: (node) => {
      const key = resourceKey("nodes", { name: node });
      return nameInOrchestrator(node, of.nodes.get(key), () => known.has(key));
    },
    containerAt: (key) => containers.get(key),
  };
}
