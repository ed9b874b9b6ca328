import { describe, expect, test } from "bun:test";
import { API_VERSION, identity } from "../../identity.ts";
import { parseAddress } from "../../ip/address.ts";
import type { NetworkPolicy } from "../../model/network-policy.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { hostPortsInRules, publishedAt, publishedBy } from "./published-ports.ts";
import type { PolicyResources } from "./resources.ts";

const web: WorkloadEndpoint = {
  ...{ apiVersion: API_VERSION, kind: "WorkloadEndpoint" },
  metadata: { name: "web", namespace: "default", labels: { [`${identity.labelPrefix}namespace`]: "default" } },
  spec: { node: "n", orchestrator: "cni", endpoint: "eth0", ipNetworks: ["10.0.0.5/32"] },
};
const TCP = 6;
const address = parseAddress("10.0.0.5") ?? { family: 4, value: 0n };
const recorded = (hostPort: number, port: number, protocol = TCP) => ({ address, protocol, hostPort, port });
const WEB = [recorded(8080, 80)];

function found(rule: object, ports: Parameters<typeof hostPortsInRules>[2] = WEB) {
  const spec = { tier: "default", selector: "all()", ingress: [{ action: "Allow", protocol: "TCP", ...rule }] };
  const policy = {
    ...{ apiVersion: API_VERSION, kind: "NetworkPolicy", metadata: { name: "p", namespace: "default" }, spec },
  } as NetworkPolicy;
  const resources: PolicyResources = {
    ...{ endpoints: [web], containerLabels: [], hostEndpoints: [], profiles: [], networkPolicies: [policy] },
    ...{ globalNetworkPolicies: [], networkSets: [], globalNetworkSets: [], tiers: [] },
  };
  return hostPortsInRules([policy], resources, ports).map(({ hostPort, port }) => `${hostPort} as ${port}`);
}

describe("hostPortsInRules()", () => {
  const to = (...ports: readonly (number | string)[]) => ({ destination: { ports } });
  test.each<[string, object, Parameters<typeof hostPortsInRules>[2], readonly string[]]>([
    ["the port of the host", to(8080), WEB, ["8080 as 80"]],
    ["a range with it", to("8000:9000"), WEB, ["8080 as 80"]],
    ["no protocol", { ...to(8080), protocol: undefined }, WEB, ["8080 as 80"]],
    ["the port of the container", to(80), WEB, []],
    ["both ports", to(80, 8080), WEB, []],
    ["a range with both", to("1:9000"), WEB, []],
    ["a name, which may be the port of the container", to("http", 8080), WEB, []],
    ["another protocol", { ...to(8080), protocol: "UDP" }, WEB, []],
    ["a source port", { source: { ports: [8080] } }, WEB, []],
    ["the same number at both ends", to(8080), [recorded(8080, 8080)], []],
    ["a port that the container has too", to(8080), [recorded(8080, 80), recorded(9090, 8080)], []],
    ["one of another container", to(8080), [{ ...recorded(8080, 80), address: { ...address, value: 1n } }], []],
  ])("%s", (_, rule, ports, expected) => {
    expect(found(rule, ports)).toEqual([...expected]);
  });
});

test("ports in the record of an endpoint count as well", () => {
  const ports = [{ name: "http", protocol: "TCP" as const, port: 80, hostPort: 8080 }];
  const published = publishedBy({ ...web, spec: { ...web.spec, ports } }, []);

  expect(publishedAt({ protocol: TCP, port: 8080 }, published)).toEqual({ protocol: TCP, hostPort: 8080, port: 80 });
  expect(publishedAt({ protocol: TCP, port: 80 }, published)).toBeUndefined();
  expect(publishedAt({ protocol: 17, port: 8080 }, published)).toBeUndefined();
});
