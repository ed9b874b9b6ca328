/** The facts of the controllers as a search for leaks needs them. Pure. */
import type { ClusterRecords } from "../../ipam/leaks/cluster-records.ts";
import type { Facts } from "../facts.ts";
import { nodeNamed } from "../node-names.ts";

export function recordsIn(facts: Facts): ClusterRecords {
  const { orchestrator, stored } = facts;
  return {
    pools: Array.from(stored.pools, ([, pool]) => pool),
    blocks: [...stored.blocks4, ...stored.blocks6].map(([, block]) => block),
    claims: Array.from(stored.claims, ([, claim]) => claim),
    borrowings: Array.from(stored.borrowings, ([, borrowing]) => borrowing),
    endpoints: Array.from(stored.endpoints, ([key, { spec }]) => ({
      key,
      revision: stored.endpoints.revisionOf(key) ?? "",
      spec,
    })),
    view: {
      podAt: (key) => orchestrator.pods.get(key),
      nodeNamed: (node) => nodeNamed(facts, node),
      containerAt: (key) => stored.endpoints.get(key)?.spec.containerID,
    },
  };
}
