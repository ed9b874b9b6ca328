/**
 * The kinds that routes between nodes are computed from, as replicas follow them, and their changes as facts.
 *
 * The resources are of the replica that the parts of the node agent share. Blocks have a replica of their own: a shared
 * one would receive everything between their keys and those of the resources.
 */
import type { Entry } from "../datastore/datastore.ts";
import { type KindTable, sourceOf } from "../datastore/replica/kinds.ts";
import type { RecordChange } from "../datastore/replica/subscription.ts";
import type { OwnerNumbers } from "../model/block-owners.ts";
import type { IPPool } from "../model/ip-pool.ts";
import { readBlock } from "../model/ipam-block.ts";
import { blocksPrefix } from "../model/keys.ts";
import { NODE, NODE_AGENT_CONFIGURATION, POOL } from "../model/kinds.ts";
import type { Node } from "../model/node.ts";
import {
  configurationNames,
  type NodeAgentConfiguration,
  type NodeAgentSettings,
  nodeAgentSettings,
} from "../model/node-agent-configuration.ts";
import type { WorkloadEndpoint } from "../model/workload-endpoint.ts";
import { announcedEndpoint, remoteEndpoint } from "./announced-endpoint.ts";
import type { RoutedBlock } from "./facts.ts";
import type { FactChange, FactChanges } from "./planner.ts";
import { routedBlock } from "./routed-block.ts";
import { routedNode } from "./routed-node.ts";
import { routedPool } from "./routed-pool.ts";

export interface RoutingValues {
  readonly nodes: Node;
  readonly pools: IPPool;
}

export const ROUTING_KINDS: KindTable<RoutingValues> = { nodes: sourceOf(NODE), pools: sourceOf(POOL) };

export interface RoutedBlockValues {
  readonly blocks4: RoutedBlock;
  readonly blocks6: RoutedBlock;
}

export const ROUTED_BLOCK_KINDS = routedBlockKinds();

/** `numbers`: the pods of the addresses are needed too. */
export function routedBlockKinds(numbers?: OwnerNumbers): KindTable<RoutedBlockValues> {
  const decode = (entry: Entry) => decodeBlock(entry, numbers);
  return { blocks4: { prefix: blocksPrefix(4), decode }, blocks6: { prefix: blocksPrefix(6), decode } };
}

type Changes<Values> = { readonly [Kind in keyof Values]: readonly RecordChange<Values[Kind]>[] };

/** `node`: the name of the planned node. */
export function resourceFacts(
  { nodes, pools, endpoints }: Changes<RoutingValues & { readonly endpoints: WorkloadEndpoint }>,
  node: string,
): FactChanges {
  return {
    nodes: nodes.map((change) => decoded(change, routedNode)),
    pools: pools.map((change) => decoded(change, routedPool)),
    endpoints: endpoints.map((change) => decoded(change, (endpoint) => announcedEndpoint(endpoint, node))),
    remoteEndpoints: endpoints.map((change) => decoded(change, (endpoint) => remoteEndpoint(endpoint, node))),
  };
}

/** The settings of one node, from the records that were readable last. */
export class FollowedSettings {
  private readonly records = new Map<string, NodeAgentConfiguration>();
  checksumOffload: NodeAgentSettings["vxlanChecksumOffload"] = "Auto";

  constructor(private readonly node: string) {}

  facts(changes: readonly RecordChange<NodeAgentConfiguration>[]): Pick<FactChanges, "settings" | "settingRecords"> {
    const keys = new Set(configurationNames(this.node).map((name) => NODE_AGENT_CONFIGURATION.key({ name })));
    const settingRecords = changes.filter(({ key }) => keys.has(key));
    for (const change of settingRecords) {
      if (change.kind === "put") this.records.set(change.key, change.value);
      else if (change.kind === "delete") this.records.delete(change.key);
    }
    const { bgp, routing, vxlanPort, vxlanVNI, vxlanChecksumOffload } = nodeAgentSettings(
      this.records.values(),
      this.node,
    );
    this.checksumOffload = vxlanChecksumOffload;
    const vxlan = { port: vxlanPort, id: vxlanVNI };
    return { settings: { isEnabled: routing === "Enabled", isBgpEnabled: bgp === "Enabled", vxlan }, settingRecords };
  }
}

export function blockFacts({ blocks4, blocks6 }: Changes<RoutedBlockValues>): FactChanges {
  return { blocks: [...blocks4, ...blocks6] };
}

/** A value that is not a fact of this node is as good as deleted. */
function decoded<Value, Fact>(
  change: RecordChange<Value>,
  factOf: (value: Value) => Fact | undefined,
): FactChange<Fact> {
  const { kind, key } = change;
  if (kind !== "put") return { kind, key };
  const value = factOf(change.value);
  return value === undefined ? { kind: "delete", key } : { kind: "put", key, value };
}

/** A block marked as deleted is about to be removed. */
function decodeBlock({ key, value }: Entry, numbers: OwnerNumbers | undefined): RoutedBlock | undefined {
  const block = readBlock(value, key);
  if (block.deleted) return undefined;
  return numbers === undefined ? routedBlock(block) : { ...routedBlock(block), owners: numbers.in(block) };
}
