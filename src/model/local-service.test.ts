import { describe, expect, test } from "bun:test";
import { localServiceOf, serviceNodesOf } from "./local-service.ts";

describe("localServiceOf()", () => {
  const metadata = { name: "web", namespace: "shop" };

  test("has the addresses of both families, each in its place", () => {
    const spec = {
      ...{ externalTrafficPolicy: "Local", type: "LoadBalancer" },
      clusterIPs: ["10.96.0.7", "fd00:96::7"],
      externalIPs: ["192.0.2.7"],
    };
    const status = {
      loadBalancer: { ingress: [{ ip: "203.0.113.7" }, { hostname: "lb.example" }, { ip: "2001:db8::7" }] },
    };

    expect(localServiceOf({ metadata, spec, status })).toEqual({
      ...{ namespace: "shop", name: "web", clusterIPs: ["10.96.0.7", "fd00:96::7"] },
      ...{ externalIPs: ["192.0.2.7"], loadBalancerIPs: ["203.0.113.7", "2001:db8::7"] },
    });
  });

  test.each([{ externalTrafficPolicy: "Cluster" }, {}])("is none of %j: every node may get its packets", (spec) => {
    expect(localServiceOf({ metadata, spec })).toBeUndefined();
  });
});

describe("serviceNodesOf()", () => {
  const slice = (endpoints: readonly object[], more: object = {}) => ({
    metadata: { name: "web-1", namespace: "shop", labels: { "kubernetes.io/service-name": "web" } },
    ...{ addressType: "IPv4", endpoints, ...more },
  });
  const on = (nodeName: string, conditions?: object) => ({ addresses: ["10.0.0.5"], nodeName, conditions });

  test("names the nodes with an endpoint that is ready and does not end", () => {
    const endpoints = [
      on("a", { ready: true, serving: true, terminating: false }),
      on("a", { ready: true }),
      on("b", { ready: false, serving: true, terminating: true }),
      on("c", { ready: true, serving: true, terminating: true }),
      on("d", { ready: false }),
      on("e"),
      { addresses: ["10.0.0.9"] },
    ];

    expect(serviceNodesOf(slice(endpoints))).toEqual({
      ...{ namespace: "shop", service: "web", family: 4, nodes: ["a", "e"] },
    });
    expect(serviceNodesOf(slice(endpoints, { addressType: "IPv6" }))?.family).toBe(6);
  });

  test("is none of names, and of a slice without a Service", () => {
    expect(serviceNodesOf(slice([], { addressType: "FQDN" }))).toBeUndefined();
    expect(serviceNodesOf({ ...slice([]), metadata: { name: "x" } })).toBeUndefined();
  });
});
