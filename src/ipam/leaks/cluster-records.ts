/** What a search for leaks in the whole cluster computes from, and what nodes that are gone left behind. Pure. */
import type { Entry } from "../../datastore/datastore.ts";
import type { Prefix } from "../../ip/prefix.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import { parseKey } from "../../model/keys.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import type { Pool } from "../pools.ts";
import type { RemovedShare } from "../removal-brake.ts";
import { allocationsIn, type NodeAllocation } from "./allocations.ts";
import type { ClusterView } from "./cluster-judge.ts";

export interface ClusterRecords {
  readonly pools: readonly Pool[];
  readonly blocks: readonly IPAMBlock[];
  readonly claims: readonly BlockClaim[];
  /** Blocks of others that nodes have, or had, addresses in. */
  readonly borrowings: readonly BlockClaim[];
  /** Empty on the orchestrator's API, where an endpoint is its pod. */
  readonly endpoints: readonly EndpointRecord[];
  readonly view: ClusterView;
}

/** A node's claim on a block. */
export interface BlockClaim {
  readonly node: string;
  readonly cidr: Prefix;
}

/** `undefined` for an entry that is not a claim. */
export function claimOf({ key }: Entry): BlockClaim | undefined {
  const parts = parseKey(key);
  return parts?.kind === "affinity" ? { node: parts.node, cidr: parts.cidr } : undefined;
}

/** `undefined` for an entry that is not the record of a borrowed block. */
export function borrowingOf({ key }: Entry): BlockClaim | undefined {
  const parts = parseKey(key);
  return parts?.kind === "borrowed" ? { node: parts.node, cidr: parts.cidr } : undefined;
}

export interface EndpointRecord {
  readonly key: string;
  readonly revision: string;
  readonly spec: WorkloadEndpoint["spec"];
}

export interface GoneNode {
  readonly node: string;
  readonly claims: readonly BlockClaim[];
  /** Endpoints of its pods. */
  readonly endpoints: readonly EndpointRecord[];
}

export function allocationsOf({ blocks }: Pick<ClusterRecords, "blocks">): readonly NodeAllocation[] {
  return blocks.flatMap(allocationsIn);
}

/** How much nodes that are gone left behind besides addresses. */
export function sharesOfGone(records: ClusterRecords, isGone: (node: string) => boolean): readonly RemovedShare[] {
  const shareOf = (what: string, nodes: readonly string[]) => {
    return { what, count: nodes.filter(isGone).length, total: nodes.length };
  };
  return [
    shareOf(
      "blocks",
      records.claims.map(({ node }) => node),
    ),
    shareOf(
      "endpoints",
      records.endpoints.map(nodeOf).filter((node) => node !== ""),
    ),
  ];
}

/** Only nodes that hold no address any more. `held`: what is left of the allocations. */
export function goneNodes(records: ClusterRecords, held = allocationsOf(records)): readonly GoneNode[] {
  const { nodeNamed } = records.view;
  const inUse = new Set(held.map(({ node }) => node));
  const isGone = (node: string) => nodeNamed(node) === undefined && !inUse.has(node);
  const claims = Map.groupBy(
    records.claims.filter(({ node }) => isGone(node)),
    ({ node }) => node,
  );
  const endpoints = Map.groupBy(
    records.endpoints.filter((endpoint) => nodeOf(endpoint) !== "" && isGone(nodeOf(endpoint))),
    nodeOf,
  );
  const borrowers = records.borrowings.map(({ node }) => node).filter(isGone);
  const nodes = new Set([...claims.keys(), ...endpoints.keys(), ...borrowers]);
  return [...nodes].map((node) => ({ node, claims: claims.get(node) ?? [], endpoints: endpoints.get(node) ?? [] }));
}

/** Nodes that have claims, endpoints or borrowed blocks. */
export function nodesIn({ claims, endpoints, borrowings }: ClusterRecords): ReadonlySet<string> {
  return new Set([...claims, ...borrowings].map(({ node }) => node).concat(endpoints.map(nodeOf)));
}

/** Empty for endpoints that are not of pods. */
function nodeOf({ spec: { orchestrator, node } }: EndpointRecord): string {
  return orchestrator === "k8s" ? (node ?? "") : "";
}
