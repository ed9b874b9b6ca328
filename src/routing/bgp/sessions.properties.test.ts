/** What holds for BGP of every cluster, whatever its nodes and BGPPeers are. */
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { type Address, formatAddress } from "../../ip/address.ts";
import { parseInterfaceAddress, parsePrefix } from "../../ip/prefix.ts";
import { bgpConfiguration } from "../../model/bgp-configuration.ts";
import { bgpFilter } from "../../model/bgp-filter.ts";
import { type BGPPeerSpec, bgpPeer } from "../../model/bgp-peer.ts";
import type { RoutedNode, RoutedPool } from "../facts.ts";
import type { BgpFacts } from "./facts.ts";
import type { BgpPlan } from "./plan.ts";
import { planBgp } from "./sessions.ts";

const NODES = ["a", "b", "c", "d", "e"];
const POOLS: readonly RoutedPool[] = ["10.10.0.0/16", "fd10::/48"].map((name) => {
  const prefix = parsePrefix(name);
  if (prefix === undefined) throw new Error(name);
  return { name, prefix, mode: { kind: "unencapsulated" }, blockLength: 26, createdAt: "", isExported: true };
});
const SELECTORS = ["all()", "has(red)", "!has(red)", "has(blue)"];

const address = (text: string) => {
  const read = parseInterfaceAddress(text);
  if (read === undefined) throw new Error(text);
  return read;
};

const nodes: fc.Arbitrary<readonly RoutedNode[]> = fc.tuple(
  ...NODES.map((name, index) =>
    fc
      .record({
        families: fc.subarray([4, 6]),
        labels: fc.constantFrom({}, { red: "" }, { blue: "" }, { red: "", blue: "" }),
        asNumber: fc.constantFrom(undefined, 65_001),
        clusterId: fc.constantFrom(undefined, undefined, "1.0.0.1", "2.0.0.1"),
      })
      .map(
        ({ families, labels, asNumber, clusterId }): RoutedNode => ({
          name,
          labels,
          addresses: {
            ...(families.includes(4) && { 4: address(`10.0.0.${9 + index}/24`) }),
            ...(families.includes(6) && { 6: address(`fd00::${9 + index}/64`) }),
          },
          vxlan: {},
          podCidrs: [],
          ...(asNumber === undefined ? {} : { asNumber }),
          ...(clusterId === undefined ? {} : { routeReflectorClusterId: clusterId }),
        }),
      ),
  ),
);

/** `target`: a selector, an address outside the cluster, or the index of a node. */
const peerPlans = fc.array(
  fc.record({
    scope: fc.constantFrom<BGPPeerSpec>({}, { node: "b" }, ...SELECTORS.map((nodeSelector) => ({ nodeSelector }))),
    target: fc.oneof(fc.constantFrom(...SELECTORS), fc.nat({ max: NODES.length - 1 }), fc.constant("192.0.2.1")),
    options: fc.constantFrom<BGPPeerSpec>({}, { localASNumber: 65_010 }, { filters: ["f"] }, { nextHopMode: "Keep" }),
  }),
  { maxLength: 4 },
);

const clusters: fc.Arbitrary<Omit<BgpFacts, "node">> = fc
  .record({ nodes, plans: peerPlans, isMesh: fc.boolean() })
  .map(({ nodes: all, plans, isMesh }) => ({
    nodes: all,
    pools: POOLS,
    announced: [],
    outsidePools: [],
    configurations: [bgpConfiguration.make({ name: "default" }, { nodeToNodeMeshEnabled: isMesh })],
    peers: plans.map(({ scope, target, options }, index) =>
      bgpPeer.make({ name: `p${index}` }, { ...scope, ...options, ...targetOf(target, all) }),
    ),
    filters: [bgpFilter.make({ name: "f" }, { importV4: [{ action: "Reject" }] })],
    passwords: new Map(),
  }));

function targetOf(target: string | number, all: readonly RoutedNode[]): BGPPeerSpec {
  if (typeof target === "string") {
    return SELECTORS.includes(target) ? { peerSelector: target } : { peerIP: target, asNumber: 1 };
  }
  const node = all[target];
  const own = node?.addresses[4] ?? node?.addresses[6];
  if (node === undefined || own === undefined) return { peerIP: "192.0.2.2", asNumber: 1 };
  return { peerIP: formatAddress(own.address), asNumber: node.asNumber ?? 64_512 };
}

function nodeWith(plans: ReadonlyMap<string, BgpPlan>, wanted: Address): string | undefined {
  const text = formatAddress(wanted);
  return [...plans].find(([, plan]) =>
    [plan.addresses[4], plan.addresses[6]].some((own) => own && formatAddress(own) === text),
  )?.[0];
}

describe("BGP of any cluster", () => {
  test("does not depend on the order of anything", () => {
    void fc.assert(
      fc.property(clusters, fc.constantFrom(...NODES), (cluster, node) => {
        const reversed = {
          ...cluster,
          node,
          nodes: [...cluster.nodes].reverse(),
          peers: [...cluster.peers].reverse(),
        };
        expect(planBgp(reversed)).toEqual(planBgp({ ...cluster, node }));
      }),
    );
  });

  test("has each session with a node at both ends, and one of them connects", () => {
    void fc.assert(
      fc.property(clusters, (cluster) => {
        const plans = new Map(NODES.map((node) => [node, planBgp({ ...cluster, node })]));
        for (const [name, plan] of plans) {
          for (const session of plan.sessions) {
            const other = nodeWith(plans, session.address);
            if (other === undefined) continue;
            expect(other).not.toBe(name);
            const own = plan.addresses[session.address.family];
            const back = plans
              .get(other)
              ?.sessions.find((each) => own !== undefined && formatAddress(each.address) === formatAddress(own));
            expect(back, `${session.name} of ${name}`).toBeDefined();
            expect(back?.passive).toBe(!session.passive);
            expect(back?.source).toEqual(session.address);
            if (back?.from === session.from)
              expect([back.localAs, back.peerAs]).toEqual([session.peerAs, session.localAs]);
          }
        }
      }),
    );
  });

  test("has every session and every name once", () => {
    void fc.assert(
      fc.property(clusters, fc.constantFrom(...NODES), (cluster, node) => {
        const { sessions } = planBgp({ ...cluster, node });
        expect(new Set(sessions.map((each) => `${formatAddress(each.address)} ${each.port}`)).size).toBe(
          sessions.length,
        );
        expect(new Set(sessions.map((each) => each.name)).size).toBe(sessions.length);
        expect(sessions.every((each) => /^[A-Za-z0-9_]{1,64}$/.test(each.name))).toBe(true);
      }),
    );
  });
});
