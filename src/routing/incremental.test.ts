/** The plan follows from the facts alone, and a change from what has changed, for random changes in random order. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { proofSize } from "../../test/support/proof-size.ts";
import { factsOf, type RoutedCluster, routedClusters } from "../../test/support/routed-cluster.ts";
import {
  blockFact,
  deleteFact,
  endpointFact,
  nodeFact,
  POOL_MODES,
  type PoolModeName,
  planLines,
  poolFact,
  putFact,
  remoteFact,
} from "../../test/support/routing-facts.ts";
import { formatPrefix, singlePrefix } from "../ip/prefix.ts";
import type { RoutedBlock } from "./facts.ts";
import type { PlanChange, RoutePlan } from "./plan.ts";
import { type FactChange, type FactChanges, RoutePlanner } from "./planner.ts";
import { vxlanMac } from "./vxlan-mac.ts";

const RUNS = { numRuns: proofSize({ everyDay: 300, soak: 5_000 }) };
const LIMIT_MILLISECONDS = proofSize({ everyDay: 60_000, soak: 1_800_000 });
const NAMES = ["node-0", "node-1", "node-2"];
const PARTS = ["tunnels", "peers", "routes", "senders", "announced", "outsidePools"] as const;

/** Few values, so that facts often clash: the same address or MAC of two nodes, nested pools, blocks and pod CIDRs. */
const oneOf = <const Values extends readonly [unknown, ...unknown[]]>(...values: Values) =>
  fc.constantFrom<Values[number]>(...values);
const nodes = fc
  .record({
    name: oneOf("node-0", "node-1", "node-2"),
    ipv4: oneOf("", "192.0.2.1/24", "192.0.2.2/24", "198.51.100.1/24", "192.0.2.3/16"),
    ipv6: oneOf("", "2001:db8::1/64", "2001:db8:1::1/64"),
    vxlan4: oneOf("", "10.0.0.0", "10.0.0.0", "10.0.0.64", "10.0.0.64"),
    vxlan6: oneOf("", "fd00::"),
    ipip: oneOf("", "10.0.0.65"),
    podCidrs: oneOf([], ["10.0.0.0/26"], ["10.0.1.0/24", "fd00::/122"]),
    reported: oneOf([], ["192.0.2.1"], ["192.0.2.2", "2001:db8::1"]),
    mac: oneOf(undefined, undefined, vxlanMac("node-1", 4), "66:00:00:00:00:01"),
  })
  .map(({ name, mac, ...others }) => ({ name, ...others, ...(mac === undefined ? {} : { mac }) }))
  .map(({ name, ...text }) => ({ nodes: [putFact(`node ${name}`, nodeFact(name, text))] }));
const pools = fc
  .record({
    name: oneOf("a", "b"),
    cidr: oneOf("10.0.0.0/16", "10.0.0.0/16", "10.0.0.0/16", "10.0.0.0/26", "10.0.0.64/26", "fd00::/64"),
    mode: fc.constantFrom(...(Object.keys(POOL_MODES) as PoolModeName[])),
    isExported: fc.boolean(),
    blockLength: oneOf(undefined, undefined, 32),
  })
  .map(({ name, cidr, mode, isExported, blockLength }) => ({
    pools: [putFact(`pool ${name}`, poolFact(name, cidr, mode, isExported, blockLength))],
  }));
const borrowed = fc.dictionary(oneOf("10.0.0.1", "10.0.0.2", "10.0.0.65"), fc.constantFrom(...NAMES), { maxKeys: 2 });
const ofTunnels = fc.dictionary(oneOf("10.0.0.0", "10.0.0.64", "fd00::"), fc.constantFrom(...NAMES), { maxKeys: 2 });
/** The last ones are around nodes. */
const CIDRS = ["10.0.0.0/26", "10.0.0.64/26", "10.0.0.1/32", "fd00::/122", "192.0.2.0/30", "198.51.100.1/32"] as const;
const blocks = fc
  .tuple(oneOf(...CIDRS), oneOf(undefined, ...NAMES), borrowed, ofTunnels)
  .map(([cidr, node, lent, tunnels]) => ({ blocks: [putFact(`block ${cidr}`, blockFact(cidr, node, lent, tunnels))] }));
const endpoints = fc
  .tuple(oneOf("x", "y"), oneOf([], ["10.0.0.1"], ["10.0.0.70", "10.0.1.5"]), oneOf([], ["10.0.0.2"]))
  .map(([key, addresses, floating]) => ({
    endpoints: [putFact(`endpoint ${key}`, endpointFact(addresses, floating))],
  }));
const remoteEndpoints = fc
  .tuple(oneOf("r", "s"), oneOf("node-1", "node-2"), oneOf(["10.0.0.1"], ["10.0.0.70", "10.0.1.5"]))
  .map(([key, node, addresses]) => ({ remoteEndpoints: [putFact(`endpoint ${key}`, remoteFact(node, addresses))] }));
const deletions = fc.oneof(
  fc.constantFrom(...NAMES).map((name) => ({ nodes: [deleteFact(`node ${name}`)] })),
  oneOf("a", "b").map((name) => ({ pools: [deleteFact(`pool ${name}`)] })),
  oneOf(...CIDRS).map((cidr) => ({ blocks: [deleteFact(`block ${cidr}`)] })),
  oneOf("x", "y").map((key) => ({ endpoints: [deleteFact(`endpoint ${key}`)] })),
  oneOf("r", "s").map((key) => ({ remoteEndpoints: [deleteFact(`endpoint ${key}`)] })),
);
const settings = fc
  .record({ isEnabled: fc.boolean(), isBgpEnabled: fc.boolean() })
  .map((chosen) => ({ settings: chosen }));
/** Changes after which everything is planned again are rare: they hide what smaller ones have left out. */
const small = fc.oneof(blocks, endpoints, remoteEndpoints, deletions);
const anyChange: fc.Arbitrary<FactChanges> = fc.oneof(
  { weight: 12, arbitrary: small },
  { weight: 2, arbitrary: nodes },
  { weight: 1, arbitrary: fc.oneof(pools, settings) },
);
const beginnings = fc.tuple(fc.array(nodes, { minLength: 2, maxLength: 4 }), pools, fc.array(small, { maxLength: 4 }));

describe("RoutePlanner", () => {
  test(
    "plans the same after any history, and reports exactly what differs",
    () => {
      fc.assert(
        fc.property(beginnings, fc.array(anyChange, { maxLength: 20 }), ([someNodes, pool, others], changes) => {
          const planner = new RoutePlanner("node-0", { isEnabled: true, isBgpEnabled: true });
          const history: FactChanges[] = [];
          for (const facts of [merged([...someNodes, pool, ...others]), ...changes]) {
            history.push(facts);
            const before = copyOf(planner.plan);
            const change = planner.update(facts);
            expect(textOf(change)).toEqual(differenceOf(before, planner.plan));

            const again = new RoutePlanner("node-0", { isEnabled: true, isBgpEnabled: true });
            again.update(reversed(latest(merged(history))));
            expect(planLines(planner.plan)).toEqual(planLines(again.plan));
            expect(planner.plan.problems).toEqual(again.plan.problems);
          }
        }),
        RUNS,
      );
    },
    LIMIT_MILLISECONDS,
  );

  test(
    "a change of one block changes only what follows from it",
    () => {
      fc.assert(
        fc.property(routedClusters, fc.nat(), fc.nat(6), fc.boolean(), (cluster, chosen, owner, isDeleted) => {
          const block = cluster.blocks[chosen % cluster.blocks.length];
          if (block === undefined) return;
          const key = `block ${formatPrefix(block.prefix)}`;
          const after: RoutedBlock = { ...block, node: owner < 5 ? `node-${owner}` : undefined };
          for (const { name } of cluster.nodes) {
            const planner = new RoutePlanner(name, { isEnabled: true, isBgpEnabled: cluster.isBgpEnabled });
            planner.update(factsOf(cluster, name));
            const before = copyOf(planner.plan);
            const change = planner.update({ blocks: [isDeleted ? deleteFact(key) : putFact(key, after)] });
            expect([change.tunnels.size, change.peers.size, change.senders.size]).toEqual([0, 0, 0]);
            const possible = followingFrom(cluster, [block, after]);
            for (const text of [...change.routes, ...change.announced]) expect(possible).toContain(text);
            for (const [text, route] of before.routes) {
              if (!change.routes.has(text)) expect(planner.plan.routes.get(text)).toBe(route);
            }
          }
        }),
        RUNS,
      );
    },
    LIMIT_MILLISECONDS,
  );
});

/** The destinations of the blocks, and the tunnel addresses of nodes that got or lost one of them. */
function followingFrom({ nodes: all, targets }: RoutedCluster, changed: readonly RoutedBlock[]): readonly string[] {
  const lent = changed.flatMap(({ borrowed: each }) => [...each.values()]);
  const holders = [...lent.map(({ node }) => node), ...changed.map(({ node }) => node)];
  const ends = all
    .filter(({ name }) => holders.includes(name))
    .flatMap(({ vxlan, ipip }) => [vxlan[4]?.address, vxlan[6]?.address, ipip]);
  return [
    ...changed.map(({ prefix }) => formatPrefix(prefix)),
    ...[...lent.map(({ address }) => address), ...ends].flatMap((each) =>
      each ? [formatPrefix(singlePrefix(each))] : [],
    ),
    ...targets.map(({ address: text }) => `${text}/${text.includes(":") ? 128 : 32}`),
  ];
}

function merged(changes: readonly FactChanges[]): FactChanges {
  const last = changes.findLast((each) => each.settings !== undefined)?.settings;
  return {
    ...(last === undefined ? {} : { settings: last }),
    nodes: changes.flatMap((each) => each.nodes ?? []),
    pools: changes.flatMap((each) => each.pools ?? []),
    blocks: changes.flatMap((each) => each.blocks ?? []),
    endpoints: changes.flatMap((each) => each.endpoints ?? []),
    remoteEndpoints: changes.flatMap((each) => each.remoteEndpoints ?? []),
  };
}

/** Only the facts that are left in the end. */
function latest(changes: FactChanges): FactChanges {
  const left = <Value>(all: readonly FactChange<Value>[] = []) =>
    [...new Map(all.map((change) => [change.key, change])).values()].filter(({ kind }) => kind === "put");
  const { nodes: ofNodes, pools: ofPools, blocks: ofBlocks, endpoints: ofEndpoints } = changes;
  const { remoteEndpoints: ofRemote } = changes;
  return {
    ...changes,
    nodes: left(ofNodes),
    pools: left(ofPools),
    blocks: left(ofBlocks),
    endpoints: left(ofEndpoints),
    remoteEndpoints: left(ofRemote),
  };
}

function reversed({
  nodes: n = [],
  pools: p = [],
  blocks: b = [],
  endpoints: e = [],
  remoteEndpoints: r = [],
  ...rest
}: FactChanges): FactChanges {
  const ofEndpoints = { endpoints: e.toReversed(), remoteEndpoints: r.toReversed() };
  return { ...rest, nodes: n.toReversed(), pools: p.toReversed(), blocks: b.toReversed(), ...ofEndpoints };
}

function copyOf(plan: RoutePlan) {
  return {
    tunnels: new Map(plan.tunnels),
    peers: new Map(plan.peers),
    routes: new Map(plan.routes),
    senders: new Map(plan.senders),
    announced: new Map(plan.announced),
    outsidePools: new Map(plan.outsidePools),
  };
}

function textOf(change: PlanChange): readonly string[] {
  return PARTS.flatMap((part) => Array.from(change[part], (key) => `${part} ${key}`)).toSorted();
}

function differenceOf(before: ReturnType<typeof copyOf>, after: RoutePlan): readonly string[] {
  return PARTS.flatMap((part) => {
    const [left, right]: readonly ReadonlyMap<string, unknown>[] = [before[part], after[part]];
    const keys = [...new Set([...(left?.keys() ?? []), ...(right?.keys() ?? [])])];
    return keys.filter((key) => !Bun.deepEquals(left?.get(key), right?.get(key))).map((key) => `${part} ${key}`);
  }).toSorted();
}
