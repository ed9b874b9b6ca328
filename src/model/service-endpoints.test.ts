import { describe, expect, test } from "bun:test";
import { readServiceEndpoints, serviceEndpointsOf } from "./service-endpoints.ts";

const METADATA = { name: "web-abc", namespace: "red", labels: { "kubernetes.io/service-name": "web" } };

describe("serviceEndpointsOf()", () => {
  test("are all addresses of a slice, ready or not, with its ports", () => {
    const slice = {
      metadata: METADATA,
      addressType: "IPv4",
      endpoints: [
        { addresses: ["10.0.0.1"], conditions: { ready: true } },
        { addresses: ["10.0.0.2", "10.0.0.1"], conditions: { ready: false } },
      ],
      ports: [
        { name: "http", port: 8080 },
        { name: "dns", port: 53, protocol: "UDP" },
        { name: "any", port: null },
      ],
    };

    const endpoints = serviceEndpointsOf(slice);
    expect(endpoints).toEqual({
      namespace: "red",
      service: "web",
      addresses: ["10.0.0.1", "10.0.0.2"],
      ports: [
        { protocol: 6, port: 8080 },
        { protocol: 17, port: 53 },
      ],
    });
    expect(readServiceEndpoints(JSON.stringify(endpoints), "key")).toEqual(endpoints as NonNullable<typeof endpoints>);
  });

  test.each([
    ["without endpoints", { endpoints: null, ports: null }],
    ["of names", { addressType: "FQDN", endpoints: [{ addresses: ["example.org"] }], ports: [] }],
  ])("of a slice %s are none", (_, slice) => {
    expect(serviceEndpointsOf({ metadata: METADATA, ...slice })).toMatchObject({ addresses: [], ports: [] });
  });

  test("do not exist for a slice without a service", () => {
    expect(serviceEndpointsOf({ metadata: { name: "own", namespace: "red" }, endpoints: [] })).toBeUndefined();
  });
});

test("a record of another shape cannot be read", () => {
  expect(() => readServiceEndpoints('{"service":"web"}', "/the/key")).toThrow("/the/key");
});
