/** Every pod address of a random cluster is reached from every node, by the plans of all nodes together. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { address } from "../../test/support/ip.ts";
import { proofSize } from "../../test/support/proof-size.ts";
import { type RoutedCluster, routedClusters, type Target } from "../../test/support/routed-cluster.ts";
import { RoutedNetwork } from "../../test/support/routed-network.ts";
import { type InterfaceAddress, prefixAround, prefixContains } from "../ip/prefix.ts";
import type { RoutedNode, RoutedPool } from "./facts.ts";

const RUNS = { numRuns: proofSize({ everyDay: 300, soak: 5_000 }) };
const LIMIT_MILLISECONDS = proofSize({ everyDay: 60_000, soak: 1_800_000 });

describe("the plans of all nodes", () => {
  test(
    "lead from every node to every address, directly, exactly where its pool and the nodes allow it",
    () => {
      fc.assert(
        fc.property(routedClusters, (cluster) => {
          const network = new RoutedNetwork(cluster);
          for (const { name } of cluster.nodes) {
            for (const target of cluster.targets) {
              const { end, nodes } = network.follow(name, target.address);
              const way = name === target.node ? [name] : [name, target.node];
              const isReached = end === "delivered" && Bun.deepEquals(nodes, way);
              expect({ name, target, nodes, end, isReached }).toMatchObject({
                isReached: isReachable(cluster, name, target),
              });
              expect(end).not.toBe("circle");
            }
          }
        }),
        RUNS,
      );
    },
    LIMIT_MILLISECONDS,
  );

  test(
    "never lead in a circle, and packets to an address that nobody has end at the node of its block at the latest",
    () => {
      fc.assert(
        fc.property(routedClusters, (cluster) => {
          const network = new RoutedNetwork(cluster);
          for (const { name } of cluster.nodes) {
            for (const free of cluster.free) {
              expect(["blackhole", "no route"]).toContain(network.follow(name, free, "leave").end);
            }
          }
        }),
        RUNS,
      );
    },
    LIMIT_MILLISECONDS,
  );

  test(
    "have one route at most for each destination, with those of BIRD and of own pods",
    () => {
      fc.assert(
        fc.property(routedClusters, (cluster) => {
          const network = new RoutedNetwork(cluster);
          for (const { name } of cluster.nodes) expect(network.ambiguous(name)).toEqual([]);
        }),
        RUNS,
      );
    },
    LIMIT_MILLISECONDS,
  );

  test(
    "lead back the same way: by a tunnel if the request came by it, and directly otherwise",
    () => {
      fc.assert(
        fc.property(routedClusters, (cluster) => {
          const network = new RoutedNetwork(cluster);
          const pods = cluster.targets.filter(({ kind }) => kind === "pod");
          for (const left of pods) {
            for (const right of pods.filter(({ node }) => node !== left.node)) {
              if (poolOf(cluster, left.address) !== poolOf(cluster, right.address)) continue;
              const [there, back] = [
                network.follow(left.node, right.address),
                network.follow(right.node, left.address),
              ];
              const areDirect = [there, back].every(({ end, nodes }) => end === "delivered" && nodes.length === 2);
              if (areDirect) expect(back.first).toBe(there.first as "bgp");
            }
          }
        }),
        RUNS,
      );
    },
    LIMIT_MILLISECONDS,
  );
});

/** The rules of docs/routing.md, for one pair of nodes. */
function isReachable(cluster: RoutedCluster, from: string, target: Target): boolean {
  if (from === target.node) return true;
  const [left, right] = [from, target.node].map((name) => cluster.nodes.find((node) => node.name === name));
  const { family } = address(target.address);
  const [source, destination] = [left?.addresses[family], right?.addresses[family]];
  if (!left || !right || !source || !destination) return false;
  if (target.kind !== "pod" && target.kind !== "without IPAM" && target.kind !== "floating") {
    return (
      cluster.pools.some(({ mode, prefix }) => `${mode.kind}${prefix.network.family}` === target.kind) &&
      hasTunnel(left, target.kind)
    );
  }
  const pool = poolOf(cluster, target.address);
  const isByBgp = pool?.mode.kind === "unencapsulated" && cluster.isBgpEnabled;
  if (target.kind === "floating" && !isByBgp) return false;
  if (target.kind === "without IPAM" && !isByBgp && pool?.mode.kind !== "ipip") return false;
  const isNear = isSameSubnet(source, destination);
  if (pool === undefined || pool.mode.kind === "unencapsulated") {
    return cluster.isBgpEnabled ? (pool?.isExported ?? true) : isNear;
  }
  const tunnel = `${pool.mode.kind}${family}`;
  return (pool.mode.onlyAcrossSubnets && isNear) || (hasTunnel(left, tunnel) && hasTunnel(right, tunnel));
}

function hasTunnel({ vxlan, ipip }: RoutedNode, kind: string): boolean {
  const ends: Readonly<Record<string, unknown>> = { vxlan4: vxlan[4], vxlan6: vxlan[6], ipip4: ipip };
  return ends[kind] !== undefined;
}

function poolOf({ pools }: RoutedCluster, text: string): RoutedPool | undefined {
  return pools.find(({ prefix }) => prefixContains(prefix, address(text)));
}

function isSameSubnet(left: InterfaceAddress, right: InterfaceAddress): boolean {
  const around = (each: InterfaceAddress) => prefixAround(each.address, each.length);
  return prefixContains(around(left), right.address) && prefixContains(around(right), left.address);
}
