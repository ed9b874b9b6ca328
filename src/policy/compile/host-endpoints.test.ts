import { describe, expect, test } from "bun:test";
import { globalPolicy } from "../../../test/support/global-policy.ts";
import { interpret } from "../../../test/support/interpret/interpret.ts";
import { interpretPassage } from "../../../test/support/interpret/interpret-passage.ts";
import { packetBytes } from "../../../test/support/interpret/packet-bytes.ts";
import { unmarked } from "../../../test/support/interpret/packet-marks.ts";
import { changesBetween, NO_RESOURCES } from "../../../test/support/policy-changes.ts";
import { identity } from "../../identity.ts";
import { parseAddress } from "../../ip/address.ts";
import { hostEndpoint } from "../../model/host-endpoint.ts";
import { type IPPoolSpec, ipPool } from "../../model/ip-pool.ts";
import { node } from "../../model/node.ts";
import { nodeAgentConfiguration } from "../../model/node-agent-configuration.ts";
import { PROBE_PORT } from "../../model/probe-port.ts";
import { profile } from "../../model/profile.ts";
import type { PolicyChanges } from "../inputs.ts";
import type { Passage } from "../judge/host-judge.ts";
import type { Packet } from "../judge/packet.ts";
import type { PolicyResources } from "../judge/resources.ts";
import { PolicyCompiler } from "./compiler.ts";

const NODE = "here";

const host = (name: string, spec: object, labels: Record<string, string> = {}) =>
  hostEndpoint.make({ name, labels }, { node: NODE, ...spec });
const ETH0 = host("eth0", { interfaceName: "eth0" }, { host: "eth0" });
const ALL = host("all", { interfaceName: "*" }, { host: "all" });
const ALLOW_ALL = profile.make({ name: "allow" }, { ingress: [{ action: "Allow" }], egress: [{ action: "Allow" }] });

function compile(resources: Partial<PolicyResources>): PolicyCompiler {
  const compiler = new PolicyCompiler({ node: NODE });
  compiler.update(changesBetween(NO_RESOURCES, { ...NO_RESOURCES, ...resources }));
  return compiler;
}

function packet(destinationPort = 80, protocol = 6, sourcePort = 4_000): Packet {
  const source = parseAddress("10.0.0.9");
  const destination = parseAddress("10.0.0.1");
  if (source === undefined || destination === undefined) throw new RangeError("not an address");
  return { source, destination, protocol, sourcePort, destinationPort };
}

const pass = (compiler: PolicyCompiler, passage: Passage, given = packet()) =>
  interpretPassage(compiler.table, passage, packetBytes(given)).verdict;
const toHost = (from: string): Passage => ({ kind: "to host", from });
const fromHost = (to: string): Passage => ({ kind: "from host", to });
const forwarded = (from: string, to: string): Passage => ({ kind: "forwarded", from, to });
const hookChains = ({ table }: PolicyCompiler) => [...table.chains.keys()].filter((name) => name.startsWith("host_"));

describe("without a host endpoint of this node", () => {
  test("there is no chain and no map for hosts", () => {
    const other = hostEndpoint.make({ name: "other" }, { node: "there", interfaceName: "*" });
    const policies = [globalPolicy("x", { applyOnForward: true, preDNAT: true, ingress: [{ action: "Deny" }] })];
    const compiler = compile({ hostEndpoints: [other], globalNetworkPolicies: policies });

    expect(hookChains(compiler)).toEqual([]);
    expect([...compiler.table.sets.keys()].filter((name) => name.startsWith("hosts_"))).toEqual([]);
    expect(compiler.hostEndpointCount).toBe(0);
  });

  test("nothing is left when the last one is deleted", () => {
    const resources = { ...NO_RESOURCES, hostEndpoints: [ETH0] };
    const compiler = compile(resources);
    expect(hookChains(compiler)).not.toEqual([]);
    compiler.update(changesBetween(resources, NO_RESOURCES));
    expect(hookChains(compiler)).toEqual([]);
  });
});

describe("packets of the host itself", () => {
  test("are denied by a host endpoint without policies and profiles, except failsafe ports and other interfaces", () => {
    const compiler = compile({ hostEndpoints: [ETH0] });

    expect(pass(compiler, toHost("eth0"))).toBe("drop");
    expect(pass(compiler, fromHost("eth0"))).toBe("drop");
    expect(pass(compiler, toHost("eth1"))).toBe("accept");
    expect(pass(compiler, toHost("eth0"), packet(22))).toBe("accept");
    expect(pass(compiler, toHost("eth0"), packet(68, 17))).toBe("accept");
    expect(pass(compiler, fromHost("eth0"), packet(53, 17))).toBe("accept");
    expect(pass(compiler, fromHost("eth0"), packet(22))).toBe("drop");
  });

  test("are allowed by a profile", () => {
    const compiler = compile({
      hostEndpoints: [host("eth0", { interfaceName: "eth0", profiles: ["allow"] })],
      profiles: [ALLOW_ALL],
    });
    expect([pass(compiler, toHost("eth0")), pass(compiler, fromHost("eth0"))]).toEqual(["accept", "accept"]);
  });

  test("pass if they belong to a connection, and are dropped if they belong to none", () => {
    const { table } = compile({ hostEndpoints: [ETH0] });
    const at = (state: "established" | "related" | "invalid") =>
      interpret(table, { hook: "input", iifname: "eth0", packet: packetBytes(packet()), state }).verdict;
    expect([at("established"), at("related"), at("invalid")]).toEqual(["accept", "accept", "drop"]);
  });

  test("pass on the failsafe ports of the configuration only", () => {
    const configuration = nodeAgentConfiguration.make(
      { name: `node.${NODE}` },
      { failsafeInboundHostPorts: [{ protocol: "udp", port: 99 }], failsafeOutboundHostPorts: [] },
    );
    const compiler = compile({ hostEndpoints: [ETH0] });
    compiler.update(changesBetween(NO_RESOURCES, NO_RESOURCES, configuration));

    expect(pass(compiler, toHost("eth0"), packet(22))).toBe("drop");
    expect(pass(compiler, toHost("eth0"), packet(99, 17))).toBe("accept");
    expect(pass(compiler, fromHost("eth0"), packet(53, 17))).toBe("drop");
  });

  test("are judged by the policies of the interface's own host endpoint, not by those of all interfaces", () => {
    const policies = [globalPolicy("x", { selector: "host == 'eth0'", ingress: [{ action: "Allow" }] })];
    const compiler = compile({ hostEndpoints: [ALL, ETH0], globalNetworkPolicies: policies });

    expect(pass(compiler, toHost("eth0"))).toBe("accept");
    expect(pass(compiler, toHost("eth1"))).toBe("drop");
    expect(pass(compiler, toHost("lo"))).toBe("accept");
    expect(pass(compiler, fromHost(`${identity.interfacePrefix}1`))).toBe("accept");
  });

  test("are judged by a host endpoint that expects an address of the interface, as soon as it has the address", () => {
    const expecting = host("expecting", { expectedIPs: ["10.0.0.1"] });
    const compiler = compile({ hostEndpoints: [expecting] });
    expect(pass(compiler, toHost("eth0"))).toBe("accept");
    const address = parseAddress("10.0.0.1");
    compiler.setHostInterfaces([{ name: "eth0", addresses: address === undefined ? [] : [address] }]);
    expect(pass(compiler, toHost("eth0"))).toBe("drop");
    compiler.setHostInterfaces([]);
    expect(pass(compiler, toHost("eth0"))).toBe("accept");
  });
});

describe("forwarded packets", () => {
  test("pass without an applyOnForward policy, whatever the profiles say", () => {
    const policies = [globalPolicy("x", { ingress: [{ action: "Deny" }] })];
    const compiler = compile({ hostEndpoints: [ETH0], globalNetworkPolicies: policies });

    expect(pass(compiler, forwarded("eth0", "eth1"))).toBe("accept");
    expect(hookChains(compiler).filter((name) => name.includes("forward"))).toEqual([]);
  });

  test("are denied by default as soon as one applies in the direction, without failsafes", () => {
    const policies = [globalPolicy("x", { applyOnForward: true, types: ["Ingress"], ingress: [] })];
    const compiler = compile({ hostEndpoints: [ETH0], globalNetworkPolicies: policies });

    expect(pass(compiler, forwarded("eth0", "eth1"), packet(22))).toBe("drop");
    expect(pass(compiler, forwarded("eth1", "eth0"))).toBe("accept");
  });

  test("pass a named interface without such a policy although all other interfaces have one", () => {
    const policies = [
      globalPolicy("x", { selector: "host == 'all'", applyOnForward: true, ingress: [{ action: "Deny" }] }),
    ];
    const compiler = compile({ hostEndpoints: [ALL, ETH0], globalNetworkPolicies: policies });

    expect(pass(compiler, forwarded("eth0", "eth0"))).toBe("accept");
    expect(pass(compiler, forwarded("eth1", "eth0"))).toBe("drop");
    expect(pass(compiler, forwarded(`${identity.interfacePrefix}1`, "eth0"))).toBe("drop");
  });
});

describe("preDNAT policies", () => {
  const preDNAT = (action: string, ports: readonly number[]) =>
    globalPolicy("pre", {
      preDNAT: true,
      applyOnForward: true,
      ingress: [{ action, protocol: "TCP", destination: { ports } }],
    });

  test("what they accept is not judged again by the host endpoint; the rest is", () => {
    const deny = globalPolicy("forward", { applyOnForward: true, types: ["Ingress"] });
    const globalNetworkPolicies = [preDNAT("Allow", [80]), deny];
    const compiler = compile({ hostEndpoints: [ETH0], globalNetworkPolicies });

    expect([pass(compiler, toHost("eth0")), pass(compiler, forwarded("eth0", "eth1"))]).toEqual(["accept", "accept"]);
    expect(pass(compiler, toHost("eth0"), packet(81))).toBe("drop");
    expect(pass(compiler, forwarded("eth0", "eth1"), packet(81))).toBe("drop");
  });

  test("they deny only what their rules deny, and no failsafe port", () => {
    const profiles = [ALLOW_ALL];
    const hostEndpoints = [host("eth0", { interfaceName: "eth0", profiles: ["allow"] })];
    const compiler = compile({ hostEndpoints, profiles, globalNetworkPolicies: [preDNAT("Deny", [80, 22])] });

    expect(pass(compiler, forwarded("eth0", "eth1"))).toBe("drop");
    expect(pass(compiler, toHost("eth0"), packet(81))).toBe("accept");
    expect(pass(compiler, toHost("eth0"), packet(22))).toBe("accept");
  });

  test("what comes out of a tunnel is judged itself, although it has the mark of the packet that it was in", () => {
    const compiler = compile({ hostEndpoints: [ALL], globalNetworkPolicies: [preDNAT("Allow", [80])] });
    const marks = unmarked();
    const at = (hook: "prerouting" | "input", iifname: string, port: number) =>
      interpret(compiler.table, { hook, iifname, packet: packetBytes(packet(port)) }, marks).verdict;

    expect(at("prerouting", "eth0", 80)).toBe("accept");
    expect([at("prerouting", "tunnel", 81), at("input", "tunnel", 81)]).toEqual(["accept", "drop"]);
  });

  test("only they set and read the mark of packets", () => {
    const usesMark = (compiler: PolicyCompiler) =>
      JSON.stringify([...compiler.table.chains.values()], (_, value) =>
        typeof value === "bigint" ? String(value) : value,
      ).includes('"mark"');
    const other = globalPolicy("x", { applyOnForward: true, doNotTrack: true, ingress: [{ action: "Allow" }] });

    expect(usesMark(compile({ hostEndpoints: [ETH0], globalNetworkPolicies: [other] }))).toBe(false);
    expect(usesMark(compile({ hostEndpoints: [ETH0], globalNetworkPolicies: [preDNAT("Allow", [80])] }))).toBe(true);
  });

  test("they do not apply to workloads, and neither do doNotTrack policies", () => {
    const globalNetworkPolicies = [
      preDNAT("Deny", [80]),
      globalPolicy("raw", { doNotTrack: true, applyOnForward: true, ingress: [{ action: "Deny" }] }),
    ];
    expect(compile({ globalNetworkPolicies }).table.chains.size).toBe(compile({}).table.chains.size);
  });
});

describe("doNotTrack policies", () => {
  const untracked = globalPolicy("raw", {
    doNotTrack: true,
    applyOnForward: true,
    ingress: [{ action: "Allow", protocol: "UDP" }],
    egress: [{ action: "Allow", protocol: "UDP" }],
  });

  test("what they accept is not tracked and not judged again, in both directions", () => {
    const compiler = compile({ hostEndpoints: [ETH0], globalNetworkPolicies: [untracked] });

    expect(pass(compiler, toHost("eth0"), packet(80, 17))).toBe("accept");
    expect(pass(compiler, fromHost("eth0"), packet(80, 17))).toBe("accept");
    expect(pass(compiler, toHost("eth0"))).toBe("drop");
  });

  test("the interface that a packet leaves by judges what another has accepted", () => {
    const deny = globalPolicy("forward", { selector: "host == 'all'", applyOnForward: true, types: ["Egress"] });
    const raw = globalPolicy("raw", { ...untracked.spec, selector: "host == 'eth0'" });
    const compiler = compile({ hostEndpoints: [ALL, ETH0], globalNetworkPolicies: [raw, deny] });

    expect(pass(compiler, forwarded("eth0", "eth1"), packet(80, 17))).toBe("drop");
  });

  test("neither failsafe ports nor replies of them are untracked", () => {
    const compiler = compile({ hostEndpoints: [ETH0], globalNetworkPolicies: [untracked] });
    const isUntracked = (given: Packet) => {
      const marks = unmarked();
      interpret(compiler.table, { hook: "prerouting", iifname: "eth0", packet: packetBytes(given) }, marks);
      return marks.state === "untracked";
    };
    expect([packet(80, 17), packet(68, 17), packet(4_000, 17, 53)].map(isUntracked)).toEqual([true, false, false]);
  });
});

describe("tunnels between nodes", () => {
  const VXLAN = packet(4789, 17);
  const IPIP = { ...packet(0, 4), sourcePort: 0 };
  const DENY_ALL = globalPolicy("deny", {
    ...{ doNotTrack: true, applyOnForward: true, types: ["Ingress", "Egress"] },
    ...{ ingress: [{ action: "Deny" }], egress: [{ action: "Deny" }] },
  });
  const POOL: IPPoolSpec = {
    ...{ cidr: "10.60.0.0/16", ipipMode: "Never", vxlanMode: "Never", natOutgoing: false, nodeSelector: "all()" },
    ...{ disabled: false, disableBGPExport: false, allowedUses: [], blockSize: 26 },
  };
  const poolOf = (name: string, modes: Partial<IPPoolSpec>) => ({
    kind: "put" as const,
    key: name,
    value: ipPool.make({ name }, { ...POOL, ...modes }),
    previous: undefined,
  });
  const change = (compiler: PolicyCompiler, changes: Pick<PolicyChanges, "pools" | "nodes">) =>
    compiler.update({ ...changesBetween(NO_RESOURCES, NO_RESOURCES), ...changes });
  const withPools = (compiler: PolicyCompiler, ...pools: NonNullable<PolicyChanges["pools"]>) =>
    change(compiler, { pools });
  const nodeAt = (name: string, ipv4Address: string) => ({
    ...{ kind: "put" as const, key: name, previous: undefined },
    value: node.make({ name }, { bgp: { ipv4Address } }),
  });
  /** To the host from 10.0.0.9, and from it to 10.0.0.9. */
  const verdicts = (compiler: PolicyCompiler, given: Packet) => {
    const { source: destination, destination: source } = given;
    return [pass(compiler, toHost("eth0"), given), pass(compiler, fromHost("eth0"), { ...given, source, destination })];
  };

  for (const globalNetworkPolicies of [[], [DENY_ALL]]) {
    const title = globalNetworkPolicies.length === 0 ? "without a policy" : "with a policy that denies everything";
    test(`pass a host endpoint ${title}, between nodes, as long as a pool needs them`, () => {
      const compiler = compile({ hostEndpoints: [ETH0], globalNetworkPolicies });
      expect([verdicts(compiler, VXLAN), verdicts(compiler, IPIP)].flat()).toEqual(["drop", "drop", "drop", "drop"]);
      withPools(compiler, poolOf("a", { vxlanMode: "CrossSubnet" }));
      expect(verdicts(compiler, VXLAN)).toEqual(["drop", "drop"]);
      change(compiler, { nodes: [nodeAt("there", "10.0.0.9/24")] });
      expect(verdicts(compiler, VXLAN)).toEqual(["accept", "accept"]);
      expect([verdicts(compiler, IPIP), verdicts(compiler, packet(4788, 17))].flat()).not.toContain("accept");
      withPools(compiler, poolOf("b", { ipipMode: "Always" }), { kind: "delete", key: "a", previous: undefined });
      expect(verdicts(compiler, IPIP)).toEqual(["accept", "accept"]);
      expect(verdicts(compiler, VXLAN)).toEqual(["drop", "drop"]);
      change(compiler, { nodes: [nodeAt("there", "10.0.0.8/24")] });
      expect(verdicts(compiler, IPIP)).toEqual(["drop", "drop"]);
      change(compiler, { nodes: [nodeAt("there", "10.0.0.9")] });
      expect(verdicts(compiler, IPIP)).toEqual(["accept", "accept"]);
      change(compiler, { nodes: [{ kind: "delete", key: "there", previous: undefined }] });
      expect(verdicts(compiler, IPIP)).toEqual(["drop", "drop"]);
      withPools(compiler, { kind: "delete", key: "b", previous: undefined });
      expect([...compiler.table.sets.keys()].filter((name) => /^(tunnel_ends|probed)/.test(name))).toEqual([]);
    });
  }

  const [OWN, OTHER, POD, CARD] = ["10.60.0.1", "10.60.1.1", "10.60.1.7", "10.0.0.1"] as const;
  const DEVICE = identity.vxlanDevice;
  const between = (from: string, to: string) => {
    const [source, destination] = [parseAddress(from), parseAddress(to)];
    if (source === undefined || destination === undefined) throw new RangeError("not an address");
    return { source, destination };
  };
  const tunnelsBetweenNodes = (globalNetworkPolicies: PolicyResources["globalNetworkPolicies"]) => {
    const compiler = compile({ hostEndpoints: [ALL], globalNetworkPolicies });
    withPools(compiler, poolOf("a", { vxlanMode: "Always" }));
    const tunnelOf = (name: string, ipv4VXLANTunnelAddr: string) => ({
      ...{ kind: "put" as const, key: name, previous: undefined },
      value: node.make({ name }, { ipv4VXLANTunnelAddr }),
    });
    change(compiler, { nodes: [tunnelOf("here", OWN), tunnelOf("there", OTHER)] });
    return compiler;
  };
  const PRE_DNAT = globalPolicy("first", {
    ...{ preDNAT: true, applyOnForward: true, types: ["Ingress"], ingress: [{ action: "Deny" }] },
  });

  for (const [title, globalNetworkPolicies] of [
    ["without policies", []],
    ["with a doNotTrack policy that denies everything", [DENY_ALL]],
    ["with a preDNAT policy that denies everything", [PRE_DNAT]],
    ["with both", [DENY_ALL, PRE_DNAT]],
  ] as const) {
    test(`probes of agents pass from one tunnel to another, and nothing else at their port, ${title}`, () => {
      const compiler = tunnelsBetweenNodes(globalNetworkPolicies);
      const judged = (passage: Passage, from: string, to: string, port: number = PROBE_PORT) =>
        [6, 17].map((protocol) => pass(compiler, passage, { ...packet(port, protocol), ...between(from, to) }));
      expect([judged(toHost(DEVICE), OTHER, OWN), judged(fromHost(DEVICE), OWN, OTHER)].flat()).toEqual(
        Array(4).fill("accept"),
      );
      const others = [
        ...[judged(toHost(DEVICE), POD, OWN), judged(toHost(DEVICE), OTHER, CARD), judged(toHost("eth0"), OTHER, OWN)],
        ...[judged(fromHost(DEVICE), OWN, POD), judged(fromHost("eth0"), OWN, OTHER)],
        ...[judged(toHost(DEVICE), OTHER, OWN, 9090), judged(fromHost(DEVICE), OWN, OTHER, 9090)],
      ];
      expect(others.flat()).toEqual(Array(14).fill("drop"));
      change(compiler, { nodes: [{ kind: "delete", key: "there", previous: undefined }] });
      expect(judged(toHost(DEVICE), OTHER, OWN)).toEqual(["drop", "drop"]);
    });

    test(`so do replies to probes, and neither is untracked, ${title}`, () => {
      const compiler = tunnelsBetweenNodes(globalNetworkPolicies);
      const reply = (hook: "prerouting" | "output", from: string, to: string) =>
        [6, 17].map((protocol) => {
          const marks = unmarked("established");
          const bytes = packetBytes({ ...packet(40_000, protocol, PROBE_PORT), ...between(from, to) });
          const place = hook === "output" ? { hook, oifname: DEVICE } : { hook, iifname: DEVICE };
          return [interpret(compiler.table, { ...place, packet: bytes }, marks).verdict, marks.state];
        });
      expect([reply("prerouting", OTHER, OWN), reply("output", OWN, OTHER)].flat()).toEqual(
        Array(4).fill(["accept", "established"]),
      );
    });
  }
});
