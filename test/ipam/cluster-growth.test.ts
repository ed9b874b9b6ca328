/** A cluster that fills with pods, every round trip counted; the figures stand in docs/ipam-scale.md. */
import { describe, expect, test } from "bun:test";
import { growCluster } from "../../bench/support/cluster-growth.ts";
import { quantileOf } from "../../bench/support/statistics.ts";
import { proofSize } from "../support/proof-size.ts";

const NODES = proofSize({ everyDay: 50, soak: 5_000 });
const PODS_PER_NODE = 50;

describe("growCluster()", () => {
  test(
    `gives ${NODES} nodes x ${PODS_PER_NODE} pods each its own address, in at most 5 round trips at p99`,
    async () => {
      const size = { nodes: NODES, podsPerNode: PODS_PER_NODE, cidr: "10.0.0.0/12", atOnce: 32, seed: 7 };

      const { addresses, roundTrips } = await growCluster(size);

      expect(addresses).toBe(NODES * PODS_PER_NODE);
      expect(quantileOf(roundTrips, 0.5)).toBe(2);
      expect(quantileOf(roundTrips, 0.99)).toBeLessThanOrEqual(5);
    },
    60_000 + NODES * 100,
  );
});
