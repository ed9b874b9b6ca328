import { describe, expect, test } from "bun:test";
import { identity } from "../identity.ts";
import { globalNetworkPolicy } from "../model/global-network-policy.ts";
import { hostEndpoint } from "../model/host-endpoint.ts";
import { GLOBAL_NETWORK_POLICY, HOST_ENDPOINT, NETWORK_POLICY, PROFILE } from "../model/kinds.ts";
import { networkPolicy } from "../model/network-policy.ts";
import { nodeAgentSettings } from "../model/node-agent-configuration.ts";
import { profile } from "../model/profile.ts";
import { workloadEndpoint } from "../model/workload-endpoint.ts";
import type { PolicyResources } from "../policy/judge/resources.ts";
import { explainFlow } from "./explain-flow.ts";
import type { FlowRecord } from "./flow-record.ts";
import { readStoredResources, type StoredResource, UNREADABLE } from "./stored-resources.ts";

const NAMESPACE_LABEL = `${identity.labelPrefix}namespace`;

function pod(name: string, node: string, address: string) {
  return workloadEndpoint.make(
    { name: `${node}-k8s-${name}-eth0`, namespace: "shop", labels: { app: name, [NAMESPACE_LABEL]: "shop" } },
    {
      ...{
        orchestrator: "k8s",
        node,
        pod: name,
        endpoint: "eth0",
        interfaceName: `${identity.interfacePrefix}${name}`,
      },
      ...{ ipNetworks: [`${address}/32`], profiles: ["kns.shop"] },
    },
  );
}

const [WEB, DB] = [pod("web", "one", "10.0.0.1"), pod("db", "two", "10.0.0.2")];
const OPEN = profile.make({ name: "kns.shop" }, { ingress: [{ action: "Allow" }], egress: [{ action: "Allow" }] });
const ONLY_443 = networkPolicy.make(
  { name: "web-out", namespace: "shop" },
  {
    ...{ tier: "default", selector: "app == 'web'", types: ["Egress"] },
    egress: [{ action: "Allow", protocol: "TCP", destination: { ports: [443] } }],
  },
);

const RESOURCES: PolicyResources = {
  ...{ endpoints: [WEB, DB], profiles: [OPEN], networkPolicies: [ONLY_443] },
  ...{
    containerLabels: [],
    hostEndpoints: [],
    globalNetworkPolicies: [],
    networkSets: [],
    globalNetworkSets: [],
    tiers: [],
  },
};

const ALLOWED: FlowRecord = {
  ...{ id: "one-1", node: "one", family: 4, protocol: 6, direction: "egress", verdict: "allowed", state: "ended" },
  source: { kind: "pod", namespace: "shop", name: "web", node: "one", address: "10.0.0.1", port: 40_000 },
  destination: { kind: "pod", namespace: "shop", name: "db", node: "two", address: "10.0.0.2", port: 443 },
  decisions: [{ point: "workload egress", verdict: "allow", rule: "shop/web-out egress 0" }],
  ...{ start: 1, end: 2, sent: { packets: 1, bytes: 1 }, received: { packets: 1, bytes: 1 } },
};

const MEANS = { settingsOf: (node: string) => nodeAgentSettings([], node) };

function explained(flow: Partial<FlowRecord>, resources: Partial<PolicyResources> = {}) {
  return explainFlow({ ...ALLOWED, ...flow }, { ...RESOURCES, ...resources }, MEANS);
}

describe("explainFlow()", () => {
  test("says which policies applied at both ends, and which rule decided", () => {
    expect(explained({})).toMatchObject({
      missing: [],
      sides: [
        {
          ...{ direction: "egress", of: "shop/web", namespace: "shop", verdict: "allowed" },
          reason: expect.stringContaining('NetworkPolicy "shop/web-out", egress rule 1 (spec.egress[0])'),
          policies: [{ title: "NetworkPolicy shop/web-out", tier: "default", outcome: "decides" }],
        },
        {
          ...{ direction: "ingress", of: "shop/db", verdict: "allowed" },
          reason: expect.stringContaining("judged on node two, not on one"),
        },
      ],
    });
  });

  test("says of a denied packet that no rule matches", () => {
    const { sides, missing } = explained({
      destination: { ...ALLOWED.destination, port: 80 },
      ...{ verdict: "denied", state: "denied" },
      decisions: [{ point: "workload egress", verdict: "deny", rule: "tier default egress default" }],
    });

    expect(missing).toEqual([]);
    expect(sides?.[0]).toMatchObject({ verdict: "denied", reason: expect.stringContaining("no rule of the policy") });
  });

  test("says so if the judge disagrees with what was recorded", () => {
    const other = explained({
      decisions: [{ point: "workload egress", verdict: "allow", rule: "shop/web-out egress 3" }],
    });
    const closed = explained({}, { networkPolicies: [] });

    for (const { missing } of [other, closed]) {
      expect(missing).toEqual([
        expect.stringMatching(/^workload egress: recorded is that NetworkPolicy "shop\/web-out"/),
      ]);
    }
  });

  test("a digest may stand for the beginning of a long name in the comment of the rule", () => {
    const by = (rule: string) =>
      explained({ decisions: [{ point: "workload egress", verdict: "allow", rule }] }).missing;
    expect(by("~89c4ec9f6b~op/web-out egress 0")).toEqual([]);
    // Of another namespace that ends like it.
    expect(by("~56af4bde70~op/web-out egress 0").length).toBe(1);
  });

  test("judges the backend of a Service, and before translation what was sent", () => {
    const service = { kind: "service", namespace: "shop", name: "db", address: "10.96.0.9", port: 5_432 } as const;
    const { sides } = explained({ destination: service, backend: ALLOWED.destination });

    expect(sides?.map(({ of }) => of)).toEqual(["shop/web", "shop/db"]);
    expect(sides?.[0]?.verdict).toBe("allowed");
  });

  test("judges host endpoints of the node that recorded it", () => {
    const eth0 = hostEndpoint.make({ name: "one-eth0", labels: { host: "one" } }, { node: "one", interfaceName: "*" });
    const ssh = globalNetworkPolicy.make(
      { name: "web" },
      {
        ...{ tier: "default", doNotTrack: false, preDNAT: false, applyOnForward: false, selector: "has(host)" },
        ingress: [{ action: "Allow", protocol: "TCP", destination: { ports: [80] } }],
      },
    );
    const { sides, missing } = explained(
      {
        source: { kind: "outside", address: "192.0.2.9", port: 40_000 },
        destination: { kind: "host", name: "one", address: "192.0.2.1", port: 80 },
        ...{ direction: "ingress", decisions: [{ point: "host in", verdict: "allow", rule: "web ingress 0" }] },
      },
      { hostEndpoints: [eth0], globalNetworkPolicies: [ssh] },
    );

    expect(missing).toEqual([]);
    expect(sides).toMatchObject([{ of: "host endpoint one-eth0 (node one)", verdict: "allowed" }]);
  });

  test("names what is not known any more", () => {
    const gone = "the endpoint of shop/db is not kept any more, so its policies are not shown";
    expect(explained({}, { endpoints: [WEB] }).missing).toEqual([gone]);
    expect(explainFlow(ALLOWED, undefined, MEANS)).toEqual({
      flow: ALLOWED,
      missing: ["the resources as they were then are not kept any more"],
    });
    expect(explained({ relatedTo: "one-7" }).missing[0]).toContain("it exists because of one-7");
    const decisions = [{ point: "workload egress", verdict: "unknown", unknown: "event lost" }] as const;
    expect(explained({ decisions: [...decisions] }).missing).toEqual([
      "which rule decided (workload egress): the kernel could not tell that the connection began",
    ]);
  });
});

describe("readStoredResources()", () => {
  const stored: readonly StoredResource[] = [
    { kind: "networkPolicies", key: NETWORK_POLICY.key(ONLY_443.metadata), value: JSON.stringify(ONLY_443) },
    { kind: "profiles", key: PROFILE.key(OPEN.metadata), value: JSON.stringify(OPEN) },
    { kind: "globalNetworkPolicies", key: GLOBAL_NETWORK_POLICY.key({ name: "bad" }), value: UNREADABLE },
    { kind: "hostEndpoints", key: HOST_ENDPOINT.key({ name: "bad" }), value: "no JSON" },
  ];

  test("reads what the agent wrote; policies that cannot be read deny", () => {
    const { resources } = readStoredResources(stored, [JSON.stringify(WEB), JSON.stringify(DB), "no JSON"]);
    const { globalNetworkPolicies, ...others } = resources;

    expect(others).toEqual({ ...RESOURCES, globalNetworkPolicies: undefined } as never);
    expect(globalNetworkPolicies[0]).toMatchObject({
      metadata: { name: "bad" },
      spec: { ingress: [{ action: "Deny" }] },
    });
    expect(explainFlow(ALLOWED, { ...resources, globalNetworkPolicies: [] }, MEANS).missing).toEqual([]);
    expect(explainFlow(ALLOWED, resources, MEANS).sides?.[0]?.verdict).toBe("denied");
  });
});
