/** Compares a datastore with the cluster whose objects are read (cluster-identity.ts), and records to which it belongs. */
import type { Datastore, Entry } from "../datastore/datastore.ts";
import { readAllEntries } from "../datastore/pages.ts";
import { PluginError } from "../errors.ts";
import { formatAddress, parseAddress } from "../ip/address.ts";
import { parseInterfaceAddress } from "../ip/prefix.ts";
import { ALL_AFFINITIES_PREFIX } from "../model/keys.ts";
import { CLUSTER_INFORMATION, NODE } from "../model/kinds.ts";
import { hashMachineId } from "../model/machine-annotation.ts";
import { orchestratorReference } from "../model/node-reference.ts";
import { readStoredReadiness } from "../model/stored-resources.ts";
import { quoted } from "../quote.ts";
import { WANTED_CLUSTER } from "./cluster.ts";
import { ADOPT_COMMAND, type ComparedCluster, judgeCluster, type KnownNode } from "./cluster-identity.ts";
import { claimOf } from "./leaks/cluster-records.ts";
import { decodeNode } from "./records.ts";

export interface ClusterSides {
  readonly store: Datastore;
  /** The orchestrator's objects, as `orchestratorMapping()` converts them. */
  readonly orchestrator: Datastore;
  /** Whether Nodes are records of the datastore; on the orchestrator's API they are those of the cluster. */
  readonly hasNodeRecords: boolean;
  /** Of the namespace `kube-system`; `undefined` if there is none. */
  readonly readClusterUid: () => Promise<string | undefined>;
}

/** The datastore belongs to another cluster than the one whose API is used. */
export class OtherCluster extends PluginError {
  constructor(reason: string) {
    super("config-invalid", `Cannot compare the datastore with this cluster: ${reason}`, {
      details: `check the kubeconfig and the datastore settings; if the datastore was moved to this cluster, confirm it with: ${ADOPT_COMMAND}`,
    });
  }
}

export interface ConfirmedCluster {
  readonly uid: string | undefined;
  /** Whether the datastore has it, or there is nothing to record. */
  readonly isRecorded: boolean;
  /** Whether the datastore is locked. */
  readonly isLocked: boolean;
  /** The nodes coincide, but this keeps it from being recorded. */
  readonly problem?: string;
}

/** Throws `OtherCluster`. "record": writes the UID to a datastore that has none; if it cannot, the nodes have proven it all the same. */
export async function confirmCluster(sides: ClusterSides, mode: "record" | "check"): Promise<ConfirmedCluster> {
  const uid = await sides.readClusterUid();
  const information = await readInformation(sides.store);
  const recorded = recordedUid(information);
  const isLocked = information !== undefined && !readStoredReadiness(information.value, information.key);
  const compared = recorded === undefined ? await readNodes(sides) : { records: [], nodes: [] };
  const judgement = judgeCluster({ recorded, uid, ...compared, proof: proofOf(sides) });
  if (judgement.kind === "other") throw new OtherCluster(judgement.reason);
  if (judgement.kind === "same" || uid === undefined) return { uid, isLocked, isRecorded: true };
  if (mode === "check") return { uid, isLocked, isRecorded: false };
  try {
    return { uid, isLocked, isRecorded: await recordCluster(sides.store, uid) };
  } catch (failure) {
    const message = failure instanceof Error ? failure.message : String(failure);
    const problem = `Cannot record that the datastore belongs to this cluster: ${message}`;
    return { uid, isLocked, isRecorded: false, problem };
  }
}

/** Whether ClusterInformation names this cluster, without a look at the nodes. */
export async function recordsThisCluster({
  store,
  readClusterUid,
}: Pick<ClusterSides, "store" | "readClusterUid">): Promise<boolean> {
  return recordedUid(await readInformation(store)) === (await readClusterUid());
}

/** Throws `OtherCluster` if ClusterInformation names another cluster; once it does not, it is not asked again. */
export function refusingAnotherClusterOnce({
  store,
  readClusterUid,
}: Pick<ClusterSides, "store" | "readClusterUid">): () => Promise<void> {
  let isConfirmed = false;
  return async () => {
    if (!isConfirmed) refuseAnotherCluster(await readInformation(store), await readClusterUid());
    isConfirmed = true;
  };
}

/** For a commit that was decided from the objects of a cluster. */
export function refuseAnotherCluster(entry: Entry | undefined, uid: string | undefined): void {
  const recorded = recordedUid(entry);
  if (recorded === undefined || recorded === uid) return;
  throw new OtherCluster(`it is that of cluster ${quoted(recorded)}, and this is ${quoted(uid ?? "")}`);
}

/** Everything that the judgement is made from. */
export async function compareCluster(sides: ClusterSides): Promise<ComparedCluster> {
  const uid = await sides.readClusterUid();
  const recorded = recordedUid(await readInformation(sides.store));
  return { recorded, uid, ...(await readNodes(sides)), proof: proofOf(sides) };
}

function proofOf({ hasNodeRecords }: ClusterSides): ComparedCluster["proof"] {
  return hasNodeRecords ? "machine or address" : "name";
}

/** Returns whether it was written: another may write at the same time, and a datastore that is not initialized has no record. */
export async function recordCluster(store: Datastore, uid: string): Promise<boolean> {
  const entry = await readInformation(store);
  if (entry === undefined) return false;
  const { codec } = CLUSTER_INFORMATION;
  const information = codec.read(entry.value, entry.key);
  const changed = { ...information, spec: { ...information.spec, kubeSystemUID: uid } };
  const value = codec.write(changed, entry.value);
  const written = await store.commit([{ kind: "update", key: entry.key, value, revision: entry.revision }]);
  return written.ok;
}

async function readInformation(store: Datastore): Promise<Entry | undefined> {
  return (await store.read([WANTED_CLUSTER])).answers[0]?.[0];
}

function recordedUid(entry: Entry | undefined): string | undefined {
  return entry && (CLUSTER_INFORMATION.codec.read(entry.value, entry.key).spec.kubeSystemUID || undefined);
}

async function readNodes({
  store,
  orchestrator,
  hasNodeRecords,
}: ClusterSides): Promise<Pick<ComparedCluster, "records" | "nodes">> {
  const entries = hasNodeRecords ? await readAllEntries(store, NODE.prefix()) : [];
  const claims = await readAllEntries(store, ALL_AFFINITIES_PREFIX);
  const nodes = await readAllEntries(orchestrator, NODE.prefix());
  return { records: recordedNodes(entries, claims), nodes: nodes.flatMap(clusterNode) };
}

/**
 * Nodes that are known to be of the orchestrator; if there are none, all that are recorded; if there are none either, those
 * that claim blocks.
 */
function recordedNodes(entries: readonly Entry[], claims: readonly Entry[]): readonly KnownNode[] {
  const recorded = entries.flatMap(recordedNode);
  const referenced = recorded.filter(({ isReferenced }) => isReferenced);
  if (recorded.length > 0) return referenced.length > 0 ? referenced : recorded;
  const names = new Set(claims.flatMap((entry) => claimOf(entry)?.node ?? []));
  return Array.from(names, (name) => ({ name, addresses: [] }));
}

/** Nothing of a record that cannot be read. */
function recordedNode(entry: Entry): readonly (KnownNode & { readonly isReferenced: boolean })[] {
  return ifReadable(() => {
    const { metadata, spec } = NODE.codec.read(entry.value, entry.key);
    const reference = orchestratorReference(spec);
    return {
      ...{ name: reference ?? metadata.name, isReferenced: reference !== undefined },
      machine: decodeNode(entry).machine,
      addresses: [...(spec.addresses ?? []).map(({ address }) => address), spec.bgp?.ipv4Address, spec.bgp?.ipv6Address]
        .flatMap((text) => text ?? [])
        .flatMap(addressIn),
    };
  });
}

function clusterNode(entry: Entry): readonly KnownNode[] {
  return ifReadable(() => {
    const { metadata, spec } = NODE.codec.read(entry.value, entry.key);
    const { machine, kubelet } = decodeNode(entry);
    return {
      name: metadata.name,
      machine: machine ?? (kubelet && hashMachineId(kubelet.machineId)),
      addresses: (spec.addresses ?? []).flatMap(({ address }) => addressIn(address)),
    };
  });
}

function ifReadable<Value>(read: () => Value): readonly Value[] {
  try {
    return [read()];
  } catch (failure) {
    if (failure instanceof PluginError) return [];
    throw failure;
  }
}

/** In one notation. A kubelet also reports the host name, which says no more than the name of the node. */
function addressIn(text: string): readonly string[] {
  const address = parseInterfaceAddress(text)?.address ?? parseAddress(text);
  return address === undefined ? [] : [formatAddress(address)];
}
