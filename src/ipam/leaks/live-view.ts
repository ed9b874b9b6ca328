/** What API and datastore say now about a handle that looks leaked: the search may have seen an old state. */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { parsePrefix } from "../../ip/prefix.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import { keptOf } from "../../model/kept-address.ts";
import { affinitiesPrefix, handleKey, type ResourceName, resourceKey } from "../../model/keys.ts";
import { ENDPOINT, NODE } from "../../model/kinds.ts";
import { type PodRecord, podRecordKey } from "../../model/pod-record.ts";
import { addressAt, attributesOf, ordinalsOf } from "../block.ts";
import { decodeAffinity, decodeHandle } from "../records.ts";
import { identityOf, type NodeAllocation } from "./allocations.ts";
import type { LeakCandidate } from "./candidates.ts";
import type { ClusterView } from "./cluster-judge.ts";
import { nameInOrchestrator } from "./node-names.ts";
import { readBlocks, readKeys } from "./read-keys.ts";

export interface LiveObjects {
  /** The pod as the orchestrator's API has it now. */
  readonly readPod: (name: { readonly namespace: string; readonly name: string }) => Promise<PodRecord | undefined>;
  /** As it has those of a virtual machine. */
  readonly podsOfMachine: (name: ResourceName) => Promise<readonly PodRecord[]>;
  /** Whether the orchestrator's API has no object at the path. */
  readonly isAbsent: (path: string) => Promise<boolean>;
}

export interface LiveMeans extends LiveObjects, Pick<ClusterView, "isDeclaredDead"> {
  readonly store: Datastore;
}

export async function endpointsOf(
  allocations: readonly NodeAllocation[],
  store: Datastore,
): Promise<ReadonlyMap<string, Entry>> {
  const keys = [...new Set(allocations.flatMap(({ endpointKey }) => endpointKey ?? []))];
  return new Map((await readKeys(store, keys)).map((entry) => [entry.key, entry]));
}

/** Pods, nodes and endpoints as they are now. */
export async function liveView(
  allocations: readonly NodeAllocation[],
  endpoints: ReadonlyMap<string, Entry>,
  means: LiveMeans,
): Promise<ClusterView> {
  const pods = new Map<string, PodRecord | undefined>();
  const nodes = new Map<string, string | undefined>();
  for (const { pod, node, isKept } of allocations) {
    if (pod !== undefined && !pods.has(podRecordKey(pod))) pods.set(podRecordKey(pod), await means.readPod(pod));
    const podNode = isKept && pod !== undefined ? (pods.get(podRecordKey(pod))?.node ?? "") : "";
    for (const each of podNode === "" ? [node] : [node, podNode]) {
      if (!nodes.has(each)) nodes.set(each, await liveNodeName(each, means));
    }
  }
  return {
    podAt: (key) => pods.get(key),
    nodeNamed: (node) => nodes.get(node),
    isDeclaredDead: means.isDeclaredDead,
    containerAt: (key) => containerIn(endpoints.get(key)),
  };
}

export async function liveNodeName(
  node: string,
  { store, isAbsent }: Pick<LiveMeans, "store" | "isAbsent">,
): Promise<string | undefined> {
  const [entry] = await readKeys(store, [resourceKey("nodes", { name: node })]);
  const isInOrchestrator = entry === undefined && !(await isAbsent(`/api/v1/nodes/${encodeURIComponent(node)}`));
  return nameInOrchestrator(node, entry && nodeIn(entry), () => isInOrchestrator);
}

function nodeIn({ value, key }: Entry) {
  try {
    return NODE.codec.read(value, key);
  } catch (failure) {
    if (failure instanceof PluginError) return "unreadable";
    throw failure;
  }
}

/** On the orchestrator's API an endpoint is its pod, and has the container that its pod has. */
function containerIn(entry: Entry | undefined): string | undefined {
  return entry && ENDPOINT.codec.read(entry.value, entry.key).spec.containerID;
}

/** Whether the handle holds exactly what was judged; of one that keeps addresses for an identity, what the container uses. */
export async function isUnchanged({ handle, allocations }: LeakCandidate, store: Datastore): Promise<boolean> {
  const [entry] = await readKeys(store, [handleKey(handle)]);
  const named = Object.keys(entry === undefined ? {} : decodeHandle(entry).blocks).flatMap(
    (name) => parsePrefix(name) ?? [],
  );
  const blocks = await readBlocks(store, [...allocations.map(({ block }) => block), ...named]);
  const held = blocks.flatMap((block) =>
    heldOrdinals(block, handle, allocations).map((ordinal) =>
      identityOf({
        address: addressAt(block, ordinal),
        sequenceNumber: block.sequenceNumberForAllocation[ordinal],
      }),
    ),
  );
  const judged = allocations.map(identityOf);
  return new Set(held).symmetricDifference(new Set(judged)).size === 0;
}

/** Addresses that wait for their pod, or that another container of it uses, are not judged. */
function heldOrdinals(block: IPAMBlock, handle: string, judged: readonly NodeAllocation[]): readonly number[] {
  return ordinalsOf(block, { handle }).filter((ordinal) => {
    const kept = keptOf(attributesOf(block, ordinal));
    const { node, containerId } = kept?.user ?? {};
    return (
      kept === undefined || judged.some((each) => each.containerId === containerId && each.node === (node ?? each.node))
    );
  });
}

export async function blocksOfNode(store: Datastore, node: string): Promise<readonly IPAMBlock[]> {
  const { answers } = await store.read([{ kind: "prefix", prefix: affinitiesPrefix(node) }]);
  const claims = (answers[0] ?? []).flatMap((entry) => decodeAffinity(entry) ?? []);
  return readBlocks(
    store,
    claims.map(({ cidr }) => cidr),
  );
}
