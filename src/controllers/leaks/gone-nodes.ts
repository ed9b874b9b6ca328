/** What nodes that are gone left behind, besides addresses. Pure. */
import { allocationsIn } from "../../ipam/leaks/allocations.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import type { BlockClaim, Facts } from "../facts.ts";
import { nodeNamed } from "../node-names.ts";

export interface GoneNode {
  readonly node: string;
  readonly claims: readonly BlockClaim[];
  /** Endpoints of its pods; on the orchestrator's API they are gone with the pods. */
  readonly endpoints: readonly { readonly key: string; readonly revision: string }[];
}

/** Only nodes that hold no address any more. */
export function goneNodes(facts: Facts): readonly GoneNode[] {
  const inUse = new Set(
    blocksIn(facts)
      .flatMap(allocationsIn)
      .map(({ node }) => node),
  );
  const isGone = (node: string) => nodeNamed(facts, node) === undefined && !inUse.has(node);
  const claims = Map.groupBy(
    Array.from(facts.stored.claims, ([, claim]) => claim).filter(({ node }) => isGone(node)),
    ({ node }) => node,
  );
  const endpoints = Map.groupBy(
    Array.from(facts.stored.endpoints, ([key, { spec }]) => ({
      key,
      revision: facts.stored.endpoints.revisionOf(key) ?? "",
      node: spec.orchestrator === "k8s" ? (spec.node ?? "") : "",
    })).filter(({ node }) => node !== "" && isGone(node)),
    ({ node }) => node,
  );
  const nodes = new Set([...claims.keys(), ...endpoints.keys()]);
  return [...nodes].map((node) => ({ node, claims: claims.get(node) ?? [], endpoints: endpoints.get(node) ?? [] }));
}

export function blocksIn({ stored }: Facts): readonly IPAMBlock[] {
  return [...stored.blocks4, ...stored.blocks6].map(([, block]) => block);
}
