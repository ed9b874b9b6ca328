/** Resources whose states have every field of the protocol between node agent and sidecar, for `pod0` of `namespace0`. */
import { identity } from "../../src/identity.ts";
import { globalNetworkSet } from "../../src/model/global-network-set.ts";
import { networkPolicy } from "../../src/model/network-policy.ts";
import { profile } from "../../src/model/profile.ts";
import { tier } from "../../src/model/tier.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import type { PolicyResources } from "../../src/policy/judge/resources.ts";
import { globalPolicy } from "./global-policy.ts";
import { NO_RESOURCES } from "./policy-changes.ts";
import { LOAD_NODE } from "./policy-load.ts";

const NAMESPACE = "namespace0";

/** One after the other. */
export function conversationSteps(): readonly PolicyResources[] {
  const first = wholeCluster();
  const [server, client] = first.endpoints;
  if (server === undefined || client === undefined) throw new Error("no pods");
  const others = [pod({ name: "third", node: "other", addresses: ["10.1.0.3/32"], app: "client" })];
  const second = { ...first, endpoints: [server, ...others] };
  const moved = { ...server, spec: { ...server.spec, ipNetworks: ["10.1.0.9/32"] } };
  return [first, second, { ...second, endpoints: [moved, ...others], globalNetworkPolicies: [] }];
}

function wholeCluster(): PolicyResources {
  const web = { paths: [{ exact: "/health" }, { prefix: "/public/" }], methods: ["GET", "HEAD"] };
  const ingress = [
    {
      action: "Deny",
      protocol: "TCP",
      ipVersion: 6,
      source: { nets: ["2001:db8::/32"], notNets: ["2001:db8:1::/48"] },
    },
    {
      action: "Allow",
      protocol: "TCP",
      http: web,
      source: { selector: "app == 'client'", notSelector: "role == 'bad'" },
    },
    { action: "Allow", protocol: "TCP", source: { selector: "type == 'office'" }, destination: { ports: [80, "web"] } },
    { action: "Allow", protocol: "TCP", destination: { services: { name: "api", namespace: NAMESPACE } } },
    { action: "Pass", protocol: "TCP", source: { ports: ["1000:2000"] }, destination: { notPorts: [22, "web"] } },
  ];
  const accounts = { serviceAccounts: { names: ["buyer"] }, namespaceSelector: "team == 'a'" };
  return {
    ...NO_RESOURCES,
    endpoints: [
      pod({ name: "pod0", node: LOAD_NODE, addresses: ["10.1.0.1/32", "fd00::1/128"], app: "server" }),
      pod({ name: "client", node: "other", addresses: ["10.1.0.2/32"], app: "client" }),
    ],
    profiles: [
      profile.make(
        { name: `kns.${NAMESPACE}` },
        { ingress: [{ action: "Allow" }], labelsToApply: { "pcns.team": "a" } },
      ),
      profile.make({ name: `ksa.${NAMESPACE}.buyer` }, {}),
    ],
    tiers: [tier.make({ name: "first" }, { order: 1, defaultAction: "Pass" })],
    globalNetworkPolicies: [globalPolicy("everything", { tier: "first", order: 1, ingress })],
    networkPolicies: [
      networkPolicy.make(
        { name: "accounts", namespace: NAMESPACE },
        { tier: "default", types: ["Ingress"], ingress: [{ action: "Allow", source: accounts }] },
      ),
    ],
    globalNetworkSets: [
      globalNetworkSet.make({ name: "office", labels: { type: "office" } }, { nets: ["192.0.2.0/24"] }),
    ],
    serviceEndpoints: [
      { namespace: NAMESPACE, service: "api", addresses: ["10.1.0.1"], ports: [{ protocol: 6, port: 8080 }] },
    ],
  };
}

function pod({ name, node, addresses, app }: Pod): WorkloadEndpoint {
  return workloadEndpoint.make(
    {
      name: `${node}-k8s-${name}-eth0`,
      namespace: NAMESPACE,
      labels: { app, [`${identity.labelPrefix}namespace`]: NAMESPACE },
    },
    {
      node,
      orchestrator: "k8s",
      endpoint: "eth0",
      pod: name,
      ipNetworks: [...addresses],
      profiles: [`kns.${NAMESPACE}`],
      interfaceName: `${identity.interfacePrefix}${name}`,
      ports: [{ name: "web", protocol: "TCP", port: 8080 }],
    },
  );
}

interface Pod {
  readonly name: string;
  readonly node: string;
  readonly addresses: readonly string[];
  readonly app: string;
}
