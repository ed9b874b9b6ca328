import { describe, expect, test } from "bun:test";
import { address as addressOf } from "../../../test/support/ip.ts";
import { formatAddress } from "../../ip/address.ts";
import { formatPrefix, type Prefix, parseInterfaceAddress, parsePrefix } from "../../ip/prefix.ts";
import { bgpConfiguration } from "../../model/bgp-configuration.ts";
import { bgpFilter } from "../../model/bgp-filter.ts";
import { bgpPeer } from "../../model/bgp-peer.ts";
import type { PoolMode, RoutedNode, RoutedPool } from "../facts.ts";
import { type BgpFacts, type PlacedService, passwordKey } from "./facts.ts";
import type { BgpSession } from "./plan.ts";
import { planBgp } from "./sessions.ts";

interface NodePlan {
  readonly ipv6?: string | undefined;
  readonly ipv4?: string | undefined;
  readonly labels?: Readonly<Record<string, string>>;
  readonly asNumber?: number;
  readonly routeReflectorClusterId?: string;
  readonly podCidrs?: readonly string[];
}

function prefixOf(text: string): Prefix {
  const prefix = parsePrefix(text);
  if (prefix === undefined) throw new Error(`not a prefix: ${text}`);
  return prefix;
}

function node(name: string, { ipv4, ipv6, labels = {}, podCidrs = [], ...more }: NodePlan): RoutedNode {
  const address4 = ipv4 === undefined ? undefined : parseInterfaceAddress(`${ipv4}/24`);
  const address6 = ipv6 === undefined ? undefined : parseInterfaceAddress(`${ipv6}/64`);
  return {
    name,
    labels,
    addresses: { ...(address4 && { 4: address4 }), ...(address6 && { 6: address6 }) },
    vxlan: {},
    podCidrs: podCidrs.map(prefixOf),
    ...more,
  };
}

const A = node("a", { ipv4: "10.0.0.1" });
const B = node("b", { ipv4: "10.0.0.2" });
const C = node("c", { ipv4: "10.0.0.10" });

function pool(name: string, cidr: string, mode: PoolMode["kind"] = "unencapsulated", isExported = true): RoutedPool {
  const kept: PoolMode = mode === "unencapsulated" ? { kind: mode } : { kind: mode, onlyAcrossSubnets: false };
  return { name, prefix: prefixOf(cidr), mode: kept, blockLength: 26, createdAt: "", isExported };
}

const PLAIN_POOLS = [pool("plain", "10.10.0.0/16"), pool("plain6", "fd10::/48")];
const peer = (name: string, spec: object) => bgpPeer.make({ name }, spec);
const filter = (name: string, spec: object) => bgpFilter.make({ name }, spec);
const configuration = (spec: object, name = "default") => bgpConfiguration.make({ name }, spec);
const SERVICES = configuration({ serviceClusterIPs: [{ cidr: "10.96.0.0/12" }] });
const DUAL_A = node("a", { ipv4: "10.0.0.1", ipv6: "fd00::1" });
const DUAL_B = node("b", { ipv4: "10.0.0.2", ipv6: "fd00::2" });
const NO_MESH = configuration({ nodeToNodeMeshEnabled: false });

function plan(facts: Partial<BgpFacts>, of = "a") {
  return planBgp({
    node: of,
    nodes: [A, B, C],
    pools: PLAIN_POOLS,
    announced: [],
    outsidePools: [],
    configurations: [],
    peers: [],
    filters: [],
    passwords: new Map(),
    ...facts,
  });
}

const names = ({ sessions }: { sessions: readonly BgpSession[] }) => sessions.map(({ name }) => name);
const texts = (prefixes: readonly Prefix[]) => prefixes.map(formatPrefix);

describe("the mesh", () => {
  test("has no session with a node that records the address of another one", () => {
    const reported = B.addresses[4] === undefined ? [] : [B.addresses[4].address];
    const thief = { ...node("aa", { ipv4: "10.0.0.2" }), asNumber: 65_001 };
    const sessions = (nodes: readonly RoutedNode[], of = "a") =>
      plan({ nodes }, of).sessions.map(({ from, peerAs }) => `${from} ${peerAs}`);
    expect(sessions([A, { ...B, reported }, thief])).toEqual(['node "b" 64512']);
    expect(sessions([A, B, thief])).toEqual(['node "aa" 65001', 'node "b" 64512']);
    expect(sessions([A, { ...B, reported }, thief], "aa")).toContain('node "a" 64512');
  });

  test("has a session with every other node, from the own address, in the default AS", () => {
    const { sessions, problems, asNumber, listenPort, routerId } = plan({});

    expect(problems).toEqual([]);
    expect({ asNumber, listenPort, routerId: formatAddress(routerId) }).toEqual({
      asNumber: 64_512,
      listenPort: 179,
      routerId: "10.0.0.1",
    });
    expect(sessions.map(({ address, source, ...each }) => ({ ...each, address: formatAddress(address) }))).toEqual([
      {
        kind: "node-to-node mesh",
        name: "Mesh_10_0_0_10",
        from: 'node "c"',
        address: "10.0.0.10",
        port: 179,
        localAs: 64_512,
        peerAs: 64_512,
        password: undefined,
        passive: true,
        reflector: undefined,
        nextHop: "automatic",
        restartSeconds: undefined,
        allowedOwnAs: 0,
        ttlSecurityHops: undefined,
        importRules: [],
        exportRules: [],
      },
      expect.objectContaining({ name: "Mesh_10_0_0_2", from: 'node "b"' }),
    ]);
    expect(sessions.map(({ source }) => source && formatAddress(source))).toEqual(["10.0.0.1", "10.0.0.1"]);
  });

  test("is connected by the node with the higher address", () => {
    const passive = plan({}, "b").sessions.map(({ name, passive }) => [name, passive]);

    expect(passive).toEqual([
      ["Mesh_10_0_0_1", false],
      ["Mesh_10_0_0_10", true],
    ]);
  });

  test("has a session for each family that both nodes have", () => {
    const nodes = [
      node("a", { ipv4: "10.0.0.1", ipv6: "fd00::1" }),
      node("b", { ipv4: "10.0.0.2", ipv6: "fd00::2" }),
      node("c", { ipv6: "fd00::3" }),
      node("d", {}),
    ];

    expect(names(plan({ nodes }))).toEqual(["Mesh_10_0_0_2", "Mesh_fd00__2", "Mesh_fd00__3"]);
    expect(names(plan({ nodes }, "d"))).toEqual([]);
  });

  test.each<[string, Partial<BgpFacts>, readonly string[]]>([
    ["only pools with a tunnel", { pools: [pool("v", "10.9.0.0/16", "vxlan"), pool("i", "10.8.0.0/16", "ipip")] }, []],
    ["a pool that BGP does not export", { pools: [pool("p", "10.9.0.0/16", "unencapsulated", false)] }, []],
    ["nothing but networks of services", { configurations: [SERVICES], pools: [] }, []],
    ["a pool without a tunnel", { pools: [pool("v", "fd11::/48", "vxlan"), pool("p", "10.9.0.0/16")] }, ["4"]],
    ["a node with pod CIDRs", { pools: [], nodes: [DUAL_A, { ...DUAL_B, podCidrs: [prefixOf("fd12::/64")] }] }, ["6"]],
    ["a block of another node whose pool was deleted", { pools: [], outsidePools: [prefixOf("fd07::/122")] }, ["6"]],
    ["a block whose pool was deleted", { pools: [], announced: [prefixOf("10.7.0.0/26")] }, ["4"]],
  ])("has sessions only of the families that it carries routes of: %s", (_, facts, families) => {
    const { sessions } = plan({ nodes: [DUAL_A, DUAL_B], ...facts });

    expect(sessions.map(({ address }) => String(address.family))).toEqual([...families]);
  });

  test("is not needed by a BGPPeer", () => {
    const peers = [peer("router", { peerIP: "192.0.2.1", asNumber: 1 })];

    expect(names(plan({ pools: [], peers }))).toEqual(["Global_192_0_2_1"]);
  });

  test("ends with nodeToNodeMeshEnabled: false", () => {
    expect(names(plan({ configurations: [NO_MESH] }))).toEqual([]);
  });

  test("does not contain route reflectors", () => {
    const nodes = [A, B, node("r", { ipv4: "10.0.0.3", routeReflectorClusterId: "1.0.0.1" })];

    expect(names(plan({ nodes }))).toEqual(["Mesh_10_0_0_2"]);
    expect(names(plan({ nodes }, "r"))).toEqual([]);
  });

  test("uses AS number and port of each node, password and restart time of all", () => {
    const { sessions, asNumber } = plan({
      nodes: [node("a", { ipv4: "10.0.0.1", asNumber: 65_001 }), B, C],
      configurations: [
        configuration({
          asNumber: "1.10",
          listenPort: 1790,
          nodeMeshMaxRestartTime: "5m",
          nodeMeshPassword: { file: "/etc/mesh" },
        }),
        configuration({ listenPort: 178 }, "node.b"),
      ],
      passwords: new Map([[passwordKey({ file: "/etc/mesh" }), { kind: "read", text: "s" }]]),
    });

    expect(asNumber).toBe(65_001);
    expect(sessions).toMatchObject([
      { name: "Mesh_10_0_0_10_port_1790", port: 1790, localAs: 65_001, peerAs: 65_546, password: "s" },
      { name: "Mesh_10_0_0_2_port_178", port: 178, localAs: 65_001, peerAs: 65_546, restartSeconds: 300 },
    ]);
  });

  test("has no session without its password, and says why", () => {
    const configurations = [configuration({ nodeMeshPassword: { secretKeyRef: { name: "s", key: "k" } } })];
    const reason = 'Secret "s" does not exist';
    const key = 'key "k" of Secret "s"';

    expect(plan({ configurations })).toMatchObject({
      sessions: [],
      problems: [`BGP between nodes: no session, because the password is missing: ${key} has not been read yet`],
    });
    expect(plan({ configurations, passwords: new Map([[key, { kind: "unknown", reason }]]) })).toMatchObject({
      sessions: [],
      problems: [`BGP between nodes: no session, because the password is missing: ${reason}`],
    });
  });
});

describe("a BGPPeer with an address", () => {
  const ROUTER = { peerIP: "192.0.2.1", asNumber: 64_600 };
  const facts = (spec: object, more: Partial<BgpFacts> = {}) => ({
    configurations: [NO_MESH],
    peers: [peer("p", spec)],
    ...more,
  });

  test.each([
    [ROUTER, "Global_192_0_2_1", "global", 179],
    [{ ...ROUTER, node: "a" }, "Node_192_0_2_1", "node specific", 179],
    [{ ...ROUTER, nodeSelector: "all()", peerIP: "192.0.2.1:1790" }, "Node_192_0_2_1_port_1790", "node specific", 1790],
  ] as const)("%j is a session", (spec, name, kind, port) => {
    const { sessions } = plan(facts(spec));

    expect(sessions).toMatchObject([{ name, kind, port, from: 'BGPPeer "p"', peerAs: 64_600, passive: false }]);
    expect(sessions[0]?.source).toEqual(A.addresses[4]?.address);
  });

  test.each([{ node: "b" }, { nodeSelector: "has(router)" }])("%j is not a session of another node", (scope) => {
    expect(names(plan(facts({ ...ROUTER, ...scope })))).toEqual([]);
  });

  test("has what it asks for", () => {
    const { sessions } = plan(
      facts(
        {
          ...ROUTER,
          localASNumber: 65_010,
          password: { secretKeyRef: { name: "s", key: "k" } },
          sourceAddress: "None",
          maxRestartTime: "10s",
          numAllowedLocalASNumbers: 2,
          ttlSecurity: 3,
        },
        { passwords: new Map([['key "k" of Secret "s"', { kind: "read", text: "secret" }]]) },
      ),
    );

    expect(sessions).toMatchObject([
      {
        localAs: 65_010,
        password: "secret",
        source: undefined,
        restartSeconds: 10,
        allowedOwnAs: 2,
        ttlSecurityHops: 3,
      },
    ]);
  });

  test.each([
    [{}, "automatic"],
    [{ keepOriginalNextHop: true }, "keep"],
    [{ keepOriginalNextHop: true, asNumber: 64_512 }, "automatic"],
    [{ keepOriginalNextHop: true, nextHopMode: "Auto" }, "automatic"],
    [{ nextHopMode: "Self" }, "self"],
    [{ nextHopMode: "Keep", asNumber: 64_512 }, "keep"],
  ] as const)("with %j has the next hop %p", (more, nextHop) => {
    expect(plan(facts({ ...ROUTER, ...more })).sessions).toMatchObject([{ nextHop }]);
  });

  test("that does not have its password is not a session", () => {
    const { sessions, problems } = plan(facts({ ...ROUTER, password: { file: "/etc/secret" } }));

    expect(sessions).toEqual([]);
    expect(problems).toEqual([
      'BGPPeer "p": no session, because the password is missing: file "/etc/secret" has not been read yet',
    ]);
  });

  test("of a family that the node does not have is a session only without a source address", () => {
    const spec = { peerIP: "fd00::99", asNumber: 1 };

    expect(plan(facts(spec))).toMatchObject({
      sessions: [],
      problems: [
        'BGPPeer "p": no session, because this node has no IPv6 address in spec.bgp; add one, or use sourceAddress: None',
      ],
    });
    expect(names(plan(facts({ ...spec, sourceAddress: "None" })))).toEqual(["Global_fd00__99"]);
  });

  test("of a node uses its port, and is a session of that node too", () => {
    const spec = { node: "a", peerIP: "10.0.0.2", asNumber: 64_512 };
    const configurations = [NO_MESH, configuration({ listenPort: 178 }, "node.b")];

    expect(names(plan({ ...facts(spec), configurations }))).toEqual(["Node_10_0_0_2_port_178"]);
    expect(names(plan({ ...facts(spec), configurations }, "b"))).toEqual(["Node_10_0_0_1"]);
    expect(names(plan({ ...facts({ ...spec, reversePeering: "Manual" }), configurations }, "b"))).toEqual([]);
    expect(names(plan({ ...facts(spec), configurations }, "c"))).toEqual([]);
  });

  test("of a node with another AS number is a problem", () => {
    expect(plan(facts({ peerIP: "10.0.0.2", asNumber: 1 })).problems).toEqual([
      'BGPPeer "p": 10.0.0.2 is node "b", whose AS number is 64512, not 1; correct asNumber',
    ]);
  });

  test("that is this node itself is not a session", () => {
    expect(names(plan(facts({ peerIP: "10.0.0.1", asNumber: 64_512 })))).toEqual(["Node_10_0_0_10", "Node_10_0_0_2"]);
  });

  test("replaces a session of the mesh", () => {
    const peers = [peer("p", { peerIP: "10.0.0.2", asNumber: 64_512 })];

    expect(names(plan({ peers }))).toEqual(["Global_10_0_0_2", "Mesh_10_0_0_10"]);
    expect(names(plan({ peers }, "b"))).toEqual(["Node_10_0_0_1", "Node_10_0_0_10"]);
  });

  test("is taken once: that of all nodes first, then by name", () => {
    const peers = [
      peer("z", { ...ROUTER, maxRestartTime: "1s" }),
      peer("m", { ...ROUTER, node: "a", maxRestartTime: "2s" }),
      peer("b", { ...ROUTER, peerIP: "192.0.2.2", node: "a", maxRestartTime: "3s" }),
      peer("a", { ...ROUTER, peerIP: "192.0.2.2", node: "a", maxRestartTime: "4s" }),
    ];
    const { sessions, problems } = plan({ configurations: [NO_MESH], peers });

    expect(sessions).toMatchObject([
      { name: "Global_192_0_2_1", restartSeconds: 1 },
      { name: "Node_192_0_2_2", restartSeconds: 4 },
    ]);
    expect(problems).toEqual([
      'BGPPeer "b": no session with 192.0.2.2, because BGPPeer "a" has one',
      'BGPPeer "m": no session with 192.0.2.1, because BGPPeer "z" has one',
    ]);
  });
});

describe("route reflectors", () => {
  const reflector = (name: string, ipv4: string, clusterId: string) =>
    node(name, { ipv4, labels: { reflector: "" }, routeReflectorClusterId: clusterId });
  const facts: Partial<BgpFacts> = {
    nodes: [A, B, reflector("r1", "10.0.0.101", "1.0.0.1"), reflector("r2", "10.0.0.102", "1.0.0.1")],
    configurations: [NO_MESH],
    peers: [
      peer("clients", { nodeSelector: "!has(reflector)", peerSelector: "has(reflector)" }),
      peer("reflectors", { nodeSelector: "has(reflector)", peerSelector: "has(reflector)" }),
    ],
  };

  test("have their clients, and those of the same cluster as equals", () => {
    expect(plan(facts, "r1").sessions.map(({ name, reflector }) => [name, reflector?.clusterId])).toEqual([
      ["Node_10_0_0_1", "1.0.0.1"],
      ["Node_10_0_0_102", undefined],
      ["Node_10_0_0_2", "1.0.0.1"],
    ]);
  });

  test("are the only peers of a client", () => {
    expect(plan(facts, "a").sessions.map(({ name, reflector }) => [name, reflector])).toEqual([
      ["Node_10_0_0_101", undefined],
      ["Node_10_0_0_102", undefined],
    ]);
  });

  test("of another cluster are clients", () => {
    const nodes = [reflector("r1", "10.0.0.101", "1.0.0.1"), reflector("r2", "10.0.0.102", "2.0.0.1")];

    expect(plan({ ...facts, nodes }, "r1").sessions).toMatchObject([{ reflector: { clusterId: "1.0.0.1" } }]);
  });

  test("of another AS do not reflect", () => {
    const peers = [peer("router", { nodeSelector: "has(reflector)", peerIP: "192.0.2.1", asNumber: 1 })];

    expect(plan({ ...facts, peers }, "r1").sessions).toMatchObject([{ peerAs: 1, reflector: undefined }]);
  });

  test("know the AS number that the nodes of a BGPPeer have in its sessions", () => {
    const peers = [
      peer("clients", { nodeSelector: "!has(reflector)", peerSelector: "has(reflector)", localASNumber: 7 }),
    ];

    expect(plan({ ...facts, peers }, "a").sessions).toMatchObject([{ localAs: 7, peerAs: 64_512 }, { localAs: 7 }]);
    expect(plan({ ...facts, peers }, "r1").sessions).toMatchObject([{ localAs: 64_512, peerAs: 7 }, { peerAs: 7 }]);
  });
});

describe("filters", () => {
  const sessionsWith = (filters: readonly string[], ...known: readonly ReturnType<typeof filter>[]) =>
    plan({
      nodes: [node("a", { ipv4: "10.0.0.1", ipv6: "fd00::1" })],
      peers: [
        peer("v4", { peerIP: "192.0.2.1", asNumber: 1, filters }),
        peer("v6", { peerIP: "fd00::99", asNumber: 1, filters }),
      ],
      filters: known,
    });
  const shown = (rules: BgpSession["importRules"]) =>
    rules.map(({ action, network, onlyLearned, interface: name }) =>
      [
        action,
        network &&
          `${network.isNegated ? "not " : ""}${formatPrefix(network.prefix)}{${Object.values(network.lengths)}}`,
        onlyLearned && "learned",
        name,
      ]
        .filter(Boolean)
        .join(" "),
    );

  test("are applied in the order of their names in the peer, each to its family and direction", () => {
    const { sessions } = sessionsWith(
      ["second", "first"],
      filter("first", {
        importV4: [{ action: "Reject" }],
        exportV6: [{ action: "Reject", cidr: "fd00::/8", matchOperator: "Equal" }],
      }),
      filter("second", {
        importV4: [
          { action: "Accept", cidr: "10.0.0.0/8", matchOperator: "In" },
          { action: "Accept", cidr: "172.16.0.0/12", matchOperator: "In", prefixLength: { min: 4, max: 24 } },
          { action: "Accept", cidr: "192.168.0.0/16", matchOperator: "NotIn", prefixLength: { min: 28 } },
        ],
        exportV4: [
          { action: "Accept", source: "RemotePeers" },
          { action: "Reject", cidr: "10.0.0.0/8", matchOperator: "NotEqual", interface: "vxlan*" },
        ],
      }),
    );

    expect(sessions.map(({ importRules, exportRules }) => [shown(importRules), shown(exportRules)])).toEqual([
      [
        ["accept 10.0.0.0/8{8,32}", "accept 172.16.0.0/12{12,24}", "accept not 192.168.0.0/16{28,32}", "reject"],
        ["accept learned", "reject not 10.0.0.0/8{8,8} vxlan*"],
      ],
      [[], ["reject fd00::/8{8,8}"]],
    ]);
  });

  test("without a possible prefix length match nothing, and their opposites everything", () => {
    const { sessions } = sessionsWith(
      ["short"],
      filter("short", {
        importV4: [
          { action: "Accept", cidr: "10.0.0.0/24", matchOperator: "In", prefixLength: { max: 16 } },
          { action: "Reject", cidr: "10.0.0.0/24", matchOperator: "NotIn", prefixLength: { max: 16 } },
        ],
      }),
    );

    expect(shown(sessions[0]?.importRules ?? [])).toEqual(["reject"]);
  });

  test("that do not exist prevent the session", () => {
    expect(sessionsWith(["gone"])).toMatchObject({
      sessions: [],
      problems: [
        'BGPPeer "v4": no session, because BGPFilter "gone" does not exist; create it, or remove it from filters',
        'BGPPeer "v6": no session, because BGPFilter "gone" does not exist; create it, or remove it from filters',
      ],
    });
  });
});

describe("announcements", () => {
  const facts: Partial<BgpFacts> = {
    nodes: [node("a", { ipv4: "10.0.0.1", podCidrs: ["10.244.1.0/24"] }), node("b", { podCidrs: ["10.244.2.0/24"] })],
    pools: [
      pool("plain", "10.10.0.0/16"),
      pool("secret", "10.20.0.0/16", "unencapsulated", false),
      pool("tunnel", "10.30.0.0/16", "vxlan"),
      pool("ipip", "10.40.0.0/16", "ipip", false),
    ],
    announced: [prefixOf("10.244.1.0/24"), prefixOf("10.10.0.64/26")],
    configurations: [
      configuration({
        serviceClusterIPs: [{ cidr: "10.96.0.0/12" }, { cidr: "fd00:96::/112" }],
        serviceExternalIPs: [{ cidr: "192.0.2.7/32" }],
        serviceLoadBalancerIPs: [{ cidr: "10.96.0.0/12" }],
      }),
    ],
  };

  test("are blocks and services; pools decide what is passed on and what enters the kernel", () => {
    const { announced, exported, withheld, tunnelled } = plan(facts);

    expect(texts(announced)).toEqual([
      "10.10.0.64/26",
      "10.96.0.0/12",
      "10.244.1.0/24",
      "192.0.2.7/32",
      "fd00:96::/112",
    ]);
    expect(texts(exported)).toEqual([
      "10.10.0.0/16",
      "10.30.0.0/16",
      "10.96.0.0/12",
      "10.244.1.0/24",
      "10.244.2.0/24",
      "192.0.2.7/32",
      "fd00:96::/112",
    ]);
    expect(texts(withheld)).toEqual(["10.20.0.0/16", "10.40.0.0/16"]);
    expect(texts(tunnelled)).toEqual(["10.30.0.0/16", "10.40.0.0/16"]);
  });

  test("of a block whose pool was deleted are sent too", () => {
    const { exported } = plan({ ...facts, configurations: [], announced: [prefixOf("10.7.0.0/26")] });

    expect(texts(exported)).toEqual(["10.7.0.0/26", "10.10.0.0/16", "10.30.0.0/16", "10.244.1.0/24", "10.244.2.0/24"]);
  });

  test("of services do not come from a node that is excluded from load balancers", () => {
    const labels = { "node.kubernetes.io/exclude-from-external-load-balancers": "true" };

    expect(texts(plan({ ...facts, nodes: [node("a", { labels })] }).announced)).toEqual([
      "10.10.0.64/26",
      "10.244.1.0/24",
    ]);
  });

  describe("of Services with externalTrafficPolicy: Local", () => {
    const addressesOf = (...all: readonly string[]) => all.map(addressOf);
    const local = (families: readonly (4 | 6)[], more: Partial<PlacedService> = {}): PlacedService => ({
      ...{ clusterIPs: addressesOf("10.96.0.9", "fd00:96::9"), externalIPs: addressesOf("192.0.2.7", "10.96.0.8") },
      ...{ loadBalancerIPs: addressesOf("10.96.0.10", "203.0.113.9"), families: new Set(families) },
      ...more,
    });
    const announcedWith = (...localServices: readonly PlacedService[]) =>
      texts(plan({ ...facts, announced: [], localServices }).announced);

    test("single addresses in the networks of their kind come from a node with a ready endpoint of the family", () => {
      expect(announcedWith(local([4]))).toEqual([
        ...["10.96.0.0/12", "10.96.0.9/32", "10.96.0.10/32", "192.0.2.7/32", "fd00:96::/112"],
      ]);
      expect(announcedWith(local([4, 6]))).toContain("fd00:96::9/128");
    });

    test("not from any other node, also if a network is just the address", () => {
      expect(announcedWith(local([]))).toEqual(["10.96.0.0/12", "fd00:96::/112"]);
    });

    test("of two Services with one address, an endpoint of one is enough", () => {
      expect(announcedWith(local([]), local([4], { clusterIPs: [], loadBalancerIPs: [] }))).toContain("192.0.2.7/32");
    });

    test("if its endpoints are unknown, from the nodes that announced it before; a network without one of it from all", () => {
      const announcedBefore = ["192.0.2.7/32", "10.96.0.77/32"].flatMap((text) => parsePrefix(text) ?? []);
      const unknown = { ...local([]), families: "unknown" } as const;
      const { announced } = plan({ ...facts, announced: [], localServices: [unknown], announcedBefore });

      expect(texts(announced)).toEqual(["10.96.0.0/12", "192.0.2.7/32", "fd00:96::/112"]);
      const other = { ...unknown, externalIPs: [] };
      expect(texts(plan({ ...facts, announced: [], localServices: [other] }).announced)).toContain("192.0.2.7/32");
    });

    test("not more than other nodes accept beside the blocks; those that were announced before stay", () => {
      const externalIPs = Array.from({ length: 6_000 }, (_, index) => addressOf(`10.97.${index >> 8}.${index & 255}`));
      const configurations = [
        bgpConfiguration.make({ name: "default" }, { serviceExternalIPs: [{ cidr: "10.97.0.0/16" }] }),
      ];
      const last = externalIPs.slice(-1).map((address) => `${formatAddress(address)}/32`);
      const many = { clusterIPs: [], loadBalancerIPs: [], externalIPs, families: new Set([4] as const) };
      const facts = { configurations, announced: [], localServices: [many], announcedBefore: last.map(prefixOf) };
      const { announced, problems } = plan(facts);

      expect(announced).toHaveLength(5_001);
      expect(texts(announced)).toContain(last[0] ?? "");
      expect(problems).toEqual([expect.stringContaining("1000 single addresses of Services")]);
    });

    test("nor from a node that is excluded from load balancers", () => {
      const labels = { "node.kubernetes.io/exclude-from-external-load-balancers": "true" };
      const { announced } = plan({
        ...facts,
        announced: [],
        nodes: [node("a", { labels })],
        localServices: [local([4])],
      });

      expect(texts(announced)).toEqual([]);
    });
  });

  test("have communities by value and by name, that of the node first", () => {
    const { advertisements, problems } = plan({
      configurations: [
        configuration({ communities: [{ name: "x", value: "1:1" }], listenPort: 1 }),
        configuration(
          {
            communities: [
              { name: "x", value: "2:2" },
              { name: "large", value: "1:2:3" },
            ],
            prefixAdvertisements: [
              { cidr: "10.0.0.0/8", communities: ["x", "large", "5:6", "gone"] },
              { cidr: "9.0.0.0/8", communities: ["gone"] },
            ],
          },
          "node.a",
        ),
      ],
    });

    expect(advertisements.map(({ prefix, communities }) => [formatPrefix(prefix), communities])).toEqual([
      [
        "10.0.0.0/8",
        [
          [2, 2],
          [1, 2, 3],
          [5, 6],
        ],
      ],
    ]);
    expect(problems).toHaveLength(2);
  });
});

describe("the plan", () => {
  test("has a router ID without an IPv4 address too", () => {
    const id = (name: string) => formatAddress(plan({ nodes: [node(name, { ipv6: "fd00::1" })] }, name).routerId);

    expect(id("a")).toBe(id("a"));
    expect(id("a")).not.toBe(id("b"));
    expect(id("a")).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
  });

  test("of a node without a record has no sessions", () => {
    expect(plan({}, "gone")).toMatchObject({ asNumber: 64_512, sessions: [], addresses: {} });
  });

  test("has the settings of the node", () => {
    const configurations = [
      configuration({ bindMode: "NodeIP", ignoredInterfaces: ["b*", "a*", "b*"], logSeverityScreen: "Error" }),
      configuration({ logSeverityScreen: "Debug" }, "node.a"),
    ];

    expect(plan({ configurations })).toMatchObject({
      listenOn: "node",
      ignoredInterfaces: ["a*", "b*"],
      log: "Debug",
    });
  });
});
