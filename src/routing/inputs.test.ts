import { describe, expect, test } from "bun:test";
import { prefix } from "../../test/support/ip.ts";
import { blockFact, endpointFact, nodeFact, poolFact, remoteFact } from "../../test/support/routing-facts.ts";
import { planFeeds } from "../datastore/replica/kinds.ts";
import type { RecordChange } from "../datastore/replica/subscription.ts";
import { PluginError } from "../errors.ts";
import { WITHOUT_IPAM_ANNOTATION } from "../model/endpoint-labels.ts";
import { ipPool } from "../model/ip-pool.ts";
import { type BlockAttribute, type IPAMBlock, writeBlock } from "../model/ipam-block.ts";
import { blockKey } from "../model/keys.ts";
import { NODE_AGENT_CONFIGURATION } from "../model/kinds.ts";
import { node } from "../model/node.ts";
import { workloadEndpoint } from "../model/workload-endpoint.ts";
import { blockFacts, FollowedSettings, ROUTED_BLOCK_KINDS, ROUTING_KINDS, resourceFacts } from "./inputs.ts";

const put = <Value>(key: string, value: Value): RecordChange<Value> => ({
  kind: "put",
  key,
  value,
  previous: undefined,
});

/** `holders`: the node of each address, or whether it is assigned without a node. */
function block(cidr: string, affinity: string | undefined, holders: readonly (string | boolean)[]): IPAMBlock {
  const attributes = holders.map(
    (holder): BlockAttribute => ({ secondary: typeof holder === "string" ? { node: holder } : {} }),
  );
  return {
    cidr: prefix(cidr),
    ...(affinity === undefined ? {} : { affinity }),
    allocations: holders.map((holder, index) => (holder === false ? undefined : index)),
    unallocated: [],
    attributes,
    sequenceNumber: 1n,
    sequenceNumberForAllocation: {},
    deleted: false,
  };
}

function decode(block: IPAMBlock) {
  const key = blockKey(block.cidr);
  const { prefix: start, decode } = ROUTED_BLOCK_KINDS[block.cidr.network.family === 4 ? "blocks4" : "blocks6"];
  expect(key.startsWith(start)).toBe(true);
  return decode({ key, value: writeBlock(block), revision: "1" });
}

describe("ROUTING_KINDS, ROUTED_BLOCK_KINDS", () => {
  test.each(["together", "per kind"] as const)("can be followed by replicas, %s", (grouping) => {
    expect(planFeeds(ROUTING_KINDS, grouping).length).toBeGreaterThan(0);
    expect(planFeeds(ROUTED_BLOCK_KINDS, grouping).length).toBeGreaterThan(0);
  });

  test.each([
    ["10.0.0.0/30", "10.0.0.2"],
    ["fd00::/126", "fd00::2"],
  ])("a block of %s is decoded to its node, the addresses on others, and which are assigned", (cidr, borrowed) => {
    expect(decode(block(cidr, "host:node-a", ["node-a", false, "node-b", false]))).toEqual({
      ...blockFact(cidr, "node-a", { [borrowed]: "node-b" }),
      assigned: 0b101n,
    });
  });

  test("addresses of tunnels are known by their type or handle, and those that the oldest releases assigned to nobody", () => {
    const { attributes: _, ...rest } = block("10.0.0.0/30", "host:node-a", [true, true, true, true]);
    const decoded = decode({
      ...rest,
      attributes: [
        { handleId: "vxlan-tunnel-addr-node-a", secondary: { node: "node-a", type: "vxlanTunnelAddress" } },
        { handleId: "ipip-tunnel-addr-node-b", secondary: {} },
        { secondary: {} },
        { handleId: "pods.1", secondary: {} },
      ],
    });
    expect(decoded).toEqual({
      ...blockFact("10.0.0.0/30", "node-a", { "10.0.0.1": "node-b" }),
      tunnels: new Map([
        ["10.0.0.0", "node-a"],
        ["10.0.0.1", "node-b"],
      ]),
      unnamed: new Set(["10.0.0.2"]),
      assigned: 0b1111n,
    });
  });

  test("a block without affinity lends all its addresses; one of another kind of owner too", () => {
    const lent = { "10.0.0.1": "node-a" };
    expect(decode(block("10.0.0.0/31", undefined, [false, "node-a"]))).toEqual(
      blockFact("10.0.0.0/31", undefined, lent),
    );
    expect(decode(block("10.0.0.0/31", "virtual:x", [false, "node-a"]))).toEqual(
      blockFact("10.0.0.0/31", undefined, lent),
    );
  });

  test("a block marked as deleted is not there", () => {
    expect(decode({ ...block("10.0.0.0/31", "host:node-a", [false, false]), deleted: true })).toBeUndefined();
  });
});

describe("resourceFacts()", () => {
  const none = { nodes: [], pools: [], endpoints: [] };

  test("decodes a Node", () => {
    const spec = {
      bgp: {
        asNumber: "1.10",
        ipv4Address: "192.0.2.1/24",
        ipv6Address: "2001:db8::1/64",
        ipv4IPIPTunnelAddr: "10.0.0.1",
        routeReflectorClusterID: "244.0.0.1",
      },
      ipv4VXLANTunnelAddr: "10.0.0.0",
      vxlanTunnelMACAddr: "66-04-00-00-00-61",
      ipv6VXLANTunnelAddr: "fd00::",
      vxlanTunnelMACAddrV6: "66:06:00:00:00:61",
      podCIDRs: ["10.244.1.0/24", "fd00:244::/80"],
    };
    const { nodes = [] } = resourceFacts({ ...none, nodes: [put("k", node.make({ name: "node-a" }, spec))] }, "x");
    const expected = nodeFact("node-a", {
      ipv4: "192.0.2.1/24",
      ipv6: "2001:db8::1/64",
      vxlan4: "10.0.0.0",
      vxlan6: "fd00::",
      ipip: "10.0.0.1",
      podCidrs: ["10.244.1.0/24", "fd00:244::/80"],
    });
    expect(nodes).toEqual([
      { kind: "put", key: "k", value: { ...expected, asNumber: 65_546, routeReflectorClusterId: "244.0.0.1" } },
    ]);
  });

  test("a Node without addresses has none; one without a length is alone in its subnet; a tunnel needs address and MAC", () => {
    const facts = (spec: Parameters<typeof node.make>[1]) =>
      resourceFacts({ ...none, nodes: [put("k", node.make({ name: "node-a" }, spec))] }, "x").nodes;
    expect(facts({})).toEqual([{ kind: "put", key: "k", value: nodeFact("node-a", {}) }]);
    expect(facts({ bgp: { ipv4Address: "192.0.2.1" }, ipv4VXLANTunnelAddr: "10.0.0.0" })).toEqual([
      { kind: "put", key: "k", value: nodeFact("node-a", { ipv4: "192.0.2.1/32" }) },
    ]);
  });

  test.each([
    [{ vxlanMode: "Always" }, "vxlan"],
    [{ vxlanMode: "CrossSubnet", disabled: true }, "vxlan-cross-subnet"],
    [{ ipipMode: "Always" }, "ipip"],
    [{ ipipMode: "CrossSubnet" }, "ipip-cross-subnet"],
    [{}, "none"],
  ] as const)("decodes a pool of %j", (modes, mode) => {
    const made = (more: object) => {
      const text = JSON.stringify(ipPool.make({ name: "blue" }, { cidr: "10.0.0.0/16", ...modes, ...more } as never));
      return resourceFacts({ ...none, pools: [put("k", ipPool.read(text, "k"))] }, "x").pools;
    };
    expect(made({})).toEqual([{ kind: "put", key: "k", value: poolFact("blue", "10.0.0.0/16", mode) }]);
    expect(made({ disableBGPExport: true })).toEqual([
      { kind: "put", key: "k", value: poolFact("blue", "10.0.0.0/16", mode, false) },
    ]);
  });

  test("an endpoint of another node is as good as deleted", () => {
    const spec = { ipNetworks: ["10.0.0.5/32"], ipNATs: [{ internalIP: "10.0.0.5", externalIP: "203.0.113.1" }] };
    const changes = ["node-a", "node-b"].map((name) =>
      put(name, workloadEndpoint.make({ name: "pod", namespace: "shop" }, { ...spec, node: name })),
    );
    expect(resourceFacts({ ...none, endpoints: changes }, "node-a").endpoints).toEqual([
      { kind: "put", key: "node-a", value: endpointFact(["10.0.0.5"], ["203.0.113.1"]) },
      { kind: "delete", key: "node-b" },
    ]);
  });

  test("of an endpoint of another node it has the addresses that count and that IPAM does not know", () => {
    const made = (name: string, more: object = {}) => {
      const annotations = { [WITHOUT_IPAM_ANNOTATION]: '["10.0.0.5","10.0.0.9"]' };
      const spec = { ipNetworks: ["10.0.0.5/32", "10.0.0.6/32"], node: name };
      return { ...workloadEndpoint.make({ name: "pod", namespace: "shop", annotations }, spec), ...more };
    };
    const changes = [
      put("own", made("node-a")),
      put("other", made("node-b")),
      put("finished", made("node-b", { status: { phase: "Succeeded" } })),
    ];
    expect(resourceFacts({ ...none, endpoints: changes }, "node-a").remoteEndpoints).toEqual([
      { kind: "delete", key: "own" },
      { kind: "put", key: "other", value: remoteFact("node-b", ["10.0.0.5"]) },
      { kind: "delete", key: "finished" },
    ]);
  });
});

describe("blockFacts()", () => {
  test("contains the blocks of both families", () => {
    const blocks4 = [put("four", blockFact("10.0.0.0/26"))];
    const blocks6 = [put("six", blockFact("fd00::/122"))];
    expect(blockFacts({ blocks4, blocks6 }).blocks?.map(({ key }) => key)).toEqual(["four", "six"]);
  });
});

describe("FollowedSettings", () => {
  const key = (name: string) => NODE_AGENT_CONFIGURATION.key({ name });
  const disabled = (name: string) =>
    put(key(name), NODE_AGENT_CONFIGURATION.codec.make({ name }, { bgp: "Disabled" as const }));
  const unreadable = (name: string) =>
    ({
      kind: "unreadable",
      key: key(name),
      failure: new PluginError("decode-failure", "broken"),
      previous: undefined,
    }) as const;

  test("keeps the last readable value, and names only records of this node", () => {
    const settings = new FollowedSettings("n1");
    const usual = { isEnabled: true, isBgpEnabled: true, vxlan: { port: 4789, id: 4096 } };
    expect(settings.facts([]).settings).toEqual(usual);
    expect(settings.facts([disabled("default")]).settings).toEqual({ ...usual, isBgpEnabled: false });
    const { settings: kept, settingRecords } = settings.facts([unreadable("default"), unreadable("node.n2")]);
    expect(kept).toEqual({ ...usual, isBgpEnabled: false });
    expect(settingRecords?.map(({ key }) => key)).toEqual([key("default")]);
    expect(settings.facts([{ kind: "delete", key: key("default"), previous: undefined }]).settings).toEqual(usual);
  });
});
