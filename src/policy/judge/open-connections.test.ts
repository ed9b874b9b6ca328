import { describe, expect, test } from "bun:test";
import { identity } from "../../identity.ts";
import { type Address, parseAddress } from "../../ip/address.ts";
import { globalNetworkPolicy } from "../../model/global-network-policy.ts";
import { hostEndpoint } from "../../model/host-endpoint.ts";
import { networkPolicy } from "../../model/network-policy.ts";
import { nodeAgentConfiguration, nodeAgentSettings } from "../../model/node-agent-configuration.ts";
import type { PolicyRule } from "../../model/policy-rule.ts";
import { profile } from "../../model/profile.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { type OpenConnection, OpenConnectionJudge } from "./open-connections.ts";
import type { PolicyResources } from "./resources.ts";

const [WEB, DB, OUTSIDE, HOST, SERVICE] = ["10.0.0.1", "10.0.0.2", "198.51.100.2", "192.0.2.1", "10.96.0.1"] as const;
const LABEL = `${identity.labelPrefix}namespace`;

const pod = (app: string, address: string) =>
  workloadEndpoint.make(
    { name: `one-k8s-${app}-eth0`, namespace: "shop", labels: { app, [LABEL]: "shop" } },
    { node: "one", pod: app, ipNetworks: [`${address}/32`], interfaceName: `vend${app}`, profiles: ["kns.shop"] },
  );
const WORKLOADS = [pod("web", WEB), pod("db", DB)];
const OPEN: PolicyRule[] = [{ action: "Allow" }];
const RESOURCES: PolicyResources = {
  ...{ endpoints: WORKLOADS, containerLabels: [], hostEndpoints: [], networkPolicies: [], globalNetworkPolicies: [] },
  ...{ networkSets: [], globalNetworkSets: [], tiers: [] },
  profiles: [profile.make({ name: "kns.shop" }, { ingress: OPEN, egress: OPEN })],
};
const closed = (
  app: string,
  types: "Ingress" | "Egress",
  ...ingress: PolicyRule[]
): PolicyResources["networkPolicies"] => [
  networkPolicy.make(
    { name: "closed", namespace: "shop" },
    { tier: "default", selector: `app == '${app}'`, types: [types], ingress },
  ),
];

function judgeOf(
  more: Partial<PolicyResources> = {},
  { workloads = WORKLOADS, action = "Accept" as "Accept" | "Drop" } = {},
): OpenConnectionJudge {
  const configuration = nodeAgentConfiguration.make({ name: "default" }, { defaultEndpointToHostAction: action });
  return new OpenConnectionJudge(
    { ...RESOURCES, ...more },
    {
      ...{ name: "one", workloads, settings: nodeAgentSettings([configuration], "one") },
      interfaces: [{ name: "eth0", addresses: [address(HOST)] }],
      interfaceTowards: () => "eth0",
    },
  );
}

function denies(connection: OpenConnection, ...world: Parameters<typeof judgeOf>): boolean {
  return judgeOf(...world).isDenied(connection);
}

function tcp(source: string, destination: string, port: number, answering = destination, at = port): OpenConnection {
  return {
    ...{ protocol: 6, source: address(source), destination: address(destination), answering: address(answering) },
    ports: { source: 40_000, destination: port, answering: at },
  };
}

function address(text: string): Address {
  const parsed = parseAddress(text);
  if (parsed === undefined) throw new Error(`not an address: ${text}`);
  return parsed;
}

describe("OpenConnectionJudge", () => {
  test("asks egress of the source and ingress of who answers", () => {
    expect(denies(tcp(WEB, DB, 80))).toBe(false);
    expect(denies(tcp(WEB, DB, 80), { networkPolicies: closed("web", "Egress") })).toBe(true);
    expect(denies(tcp(WEB, DB, 80), { networkPolicies: closed("db", "Ingress") })).toBe(true);
    expect(denies(tcp(WEB, DB, 80), { networkPolicies: closed("web", "Ingress") })).toBe(false);
  });

  test("judges a translated connection by who answers it, at the port that it has there", () => {
    const allowing = (port: number): PolicyRule => ({
      action: "Allow",
      protocol: "TCP",
      destination: { ports: [port] },
    });
    const connection = tcp(OUTSIDE, SERVICE, 80, DB, 8080);

    expect(denies(connection, { networkPolicies: closed("db", "Ingress", allowing(8080)) })).toBe(false);
    expect(denies(connection, { networkPolicies: closed("db", "Ingress", allowing(80)) })).toBe(true);
  });

  test("tells connections apart by the port of the client, if a rule does", () => {
    const rule: PolicyRule = { action: "Allow", protocol: "TCP", source: { ports: ["1000:2000"] } };
    const judge = judgeOf({ networkPolicies: closed("db", "Ingress", rule) });
    const { ports, ...connection } = tcp(WEB, DB, 80);
    const from = (source: number) => ({ ...connection, ports: { destination: 80, answering: 80, ...ports, source } });

    expect([999, 1000, 2000, 2001].map((port) => judge.isDenied(from(port)))).toEqual([true, false, false, true]);
  });

  test("leaves what this host sends to its own workloads alone", () => {
    expect(denies(tcp(HOST, DB, 80), { networkPolicies: closed("db", "Ingress") })).toBe(false);
    expect(denies(tcp("127.0.0.1", "127.0.0.1", 80, DB, 80), { networkPolicies: closed("db", "Ingress") })).toBe(false);
  });

  test("knows what happens to packets of workloads to this host", () => {
    expect(denies(tcp(WEB, HOST, 80), {}, { action: "Drop" })).toBe(true);
    expect(denies(tcp(WEB, OUTSIDE, 80), {}, { action: "Drop" })).toBe(false);
  });

  test("leaves connections of an address that several workloads claim alone", () => {
    for (const workloads of [
      [...WORKLOADS, pod("other", DB)],
      [pod("other", DB), ...WORKLOADS],
    ])
      expect(denies(tcp(WEB, DB, 80), { networkPolicies: closed("db", "Ingress") }, { workloads })).toBe(false);
  });

  test("leaves connections of others alone", () => {
    const elsewhere = tcp("10.0.9.1", "10.0.9.2", 80);

    expect(denies(elsewhere, { networkPolicies: closed("db", "Ingress") }, { workloads: [] })).toBe(false);
  });

  test("asks the workloads alone if no host endpoint has the interface towards the other end", () => {
    const hostEndpoints = [hostEndpoint.make({ name: "eth1" }, { node: "one", interfaceName: "eth1" })];

    expect(denies(tcp(OUTSIDE, DB, 80), { hostEndpoints, networkPolicies: closed("db", "Ingress") })).toBe(true);
    expect(denies(tcp(DB, OUTSIDE, 80), { hostEndpoints, networkPolicies: closed("db", "Egress") })).toBe(true);
    expect(denies(tcp(OUTSIDE, DB, 80), { hostEndpoints })).toBe(false);
    expect(denies(tcp(OUTSIDE, HOST, 80), { hostEndpoints })).toBe(false);
  });

  test("asks the host endpoint of the interface, which lets failsafe ports and tunnels pass", () => {
    const hostEndpoints = [
      hostEndpoint.make({ name: "eth", labels: { host: "eth" } }, { node: "one", interfaceName: "eth0" }),
    ];
    const udp = (port: number) => ({ ...tcp(OUTSIDE, HOST, port), protocol: 17 });

    expect(denies(tcp(OUTSIDE, HOST, 80), { hostEndpoints })).toBe(true);
    expect(denies(tcp(WEB, DB, 80), { hostEndpoints })).toBe(false);
    expect(denies(tcp(WEB, HOST, 80), { hostEndpoints })).toBe(false);
    expect(denies(tcp(HOST, DB, 80), { hostEndpoints })).toBe(false);
    expect(denies(tcp(HOST, OUTSIDE, 80), { hostEndpoints })).toBe(true);
    expect(denies(tcp(OUTSIDE, HOST, 22), { hostEndpoints })).toBe(false);
    expect(denies(udp(53), { hostEndpoints })).toBe(true);
    expect(denies(udp(4789), { hostEndpoints })).toBe(false);
    // Without a policy for what is forwarded, host endpoints let it pass.
    expect(denies(tcp(OUTSIDE, DB, 80), { hostEndpoints })).toBe(false);
    const forwarded = globalNetworkPolicy.make(
      { name: "forwarded" },
      {
        ...{ tier: "default", selector: "has(host)", types: ["Ingress"], ingress: [{ action: "Deny" }] },
        ...{ doNotTrack: false, preDNAT: false, applyOnForward: true },
      },
    );
    expect(denies(tcp(OUTSIDE, DB, 80), { hostEndpoints, globalNetworkPolicies: [forwarded] })).toBe(true);
    expect(denies(tcp(OUTSIDE, "203.0.113.2", 80), { hostEndpoints, globalNetworkPolicies: [forwarded] })).toBe(true);
  });
});
