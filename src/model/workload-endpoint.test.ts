import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { API_VERSION } from "../identity.ts";
import { endpointLabels } from "./endpoint-labels.ts";
import { profile } from "./profile.ts";
import { workloadEndpoint } from "./workload-endpoint.ts";
import { parseWorkloadEndpointName, workloadEndpointName, workloadEndpointPrefix } from "./workload-endpoint-name.ts";

describe("workloadEndpointName()", () => {
  const table: [string, string, string, string, string][] = [
    ["node1", "k8s", "web", "eth0", "node1-k8s-web-eth0"],
    ["n-1", "k8s", "web-0", "eth0", "n--1-k8s-web--0-eth0"],
    ["n", "cni", "abc", "eth0", "n-cni-abc-eth0"],
    ["n", "libnetwork", "ignored", "ep", "n-libnetwork-libnetwork-ep"],
    ["n", "mesos", "w--x", "e", "n-mesos-w----x-e"],
  ];
  test.each(table)("for %s %s %s %s is as the reference says", (node, orchestrator, workload, endpoint, name) => {
    expect(workloadEndpointName({ node, orchestrator, workload, endpoint })).toEqual({ ok: true, name });
  });

  test.each([
    [{ node: "" }, "node"],
    [{ node: "-n" }, "node"],
    [{ workload: "w-" }, "workload"],
    [{ endpoint: "" }, "endpoint"],
  ])("refuses %j", (change, field) => {
    const identifiers = { node: "n", orchestrator: "k8s", workload: "w", endpoint: "e", ...change };

    expect(workloadEndpointName(identifiers)).toMatchObject({ ok: false, field });
  });

  test("is the inverse of parseWorkloadEndpointName(), and begins with its workload's prefix", () => {
    const segment = fc.stringMatching(/^[a-z0-9.]([a-z0-9.-]{0,8}[a-z0-9.])?$/);
    const identifiers = fc.record({
      node: segment,
      orchestrator: fc.constantFrom("k8s", "cni"),
      workload: segment,
      endpoint: segment,
    });
    fc.assert(
      fc.property(identifiers, (sample) => {
        const named = workloadEndpointName(sample);
        const prefix = workloadEndpointPrefix(sample);
        if (!named.ok || !prefix.ok) throw new Error("the sample has good segments");
        expect(parseWorkloadEndpointName(named.name)).toEqual(sample);
        expect(named.name.startsWith(prefix.name)).toBe(true);
      }),
    );
  });
});

describe("parseWorkloadEndpointName()", () => {
  test.each(["", "a", "a-b-c", "a-b-c-", "a-b-c-d-e"])("does not recognize %p", (name) => {
    expect(parseWorkloadEndpointName(name)).toBeUndefined();
  });
});

describe("workloadEndpoint", () => {
  const document = (spec: object) => ({
    apiVersion: API_VERSION,
    kind: "WorkloadEndpoint",
    metadata: { name: "n-k8s-w-eth0", namespace: "default" },
    spec,
  });
  const spec = {
    orchestrator: "k8s",
    node: "n",
    pod: "w",
    endpoint: "eth0",
    ipNetworks: ["10.0.0.5/32", "fd00::5/128"],
    ipNATs: [{ internalIP: "10.0.0.5", externalIP: "192.0.2.1" }],
    interfaceName: "vend0123456789a",
    mac: "02:00:00:00:00:01",
    profiles: ["kns.default"],
    ports: [{ name: "http", protocol: "TCP", port: 80 }],
    allowSpoofedSourcePrefixes: ["10.9.0.0/24", "0.0.0.0/0", "2001:db8::/64"],
  };

  test("is read as written", () => {
    const result = workloadEndpoint.decode(document(spec));

    expect(result).toMatchObject({ ok: true, value: { spec } });
    if (result.ok) expect(workloadEndpoint.read(workloadEndpoint.write(result.value), "key")).toEqual(result.value);
  });

  test.each([
    [{ ipNetworks: ["10.0.0.5/26"] }, "spec.ipNetworks[0]"],
    [{ ipNetworks: ["10.0.0.6/32"] }, "spec.ipNATs[0].internalIP"],
    [{ interfaceName: "longer-than-fifteen" }, "spec.interfaceName"],
    [{ mac: "02" }, "spec.mac"],
    [{ ports: [{ protocol: "TCP", port: 70_000 }] }, "spec.ports[0].port"],
    [{ ports: [{ protocol: "ICMP", port: 80 }] }, "spec.ports[0].protocol"],
    [{ ipv4Gateway: "fd00::1" }, "spec.ipv4Gateway"],
    [{ ipv6Gateway: "169.254.1.1" }, "spec.ipv6Gateway"],
    [{ allowSpoofedSourcePrefixes: ["10.9.0.5/24"] }, "spec.allowSpoofedSourcePrefixes[0]"],
    [{ intefaceName: "x" }, "spec.intefaceName"],
  ])("refuses %j", (change, path) => {
    const result = workloadEndpoint.decode(document({ ...spec, ...change }));

    expect(result.ok ? [] : result.problems.map((problem) => problem.path)).toEqual([path]);
  });

  test("must have the name that matches its identifiers, if it has them", () => {
    const wrong = { ...document(spec), metadata: { name: "n-k8s-other-eth0", namespace: "default" } };
    const result = workloadEndpoint.decode(wrong);

    expect(result.ok ? [] : result.problems.map(({ path }) => path)).toEqual(["metadata.name"]);
    const { endpoint: _, ...unidentified } = spec;
    expect(workloadEndpoint.decode({ ...wrong, spec: unidentified }).ok).toBe(true);
    expect(workloadEndpoint.read(JSON.stringify(wrong), "key").metadata.name).toBe("n-k8s-other-eth0");
  });

  test("has labels of its namespace and orchestrator, which the workload cannot override", () => {
    const own = { app: "web", "vendor.org/namespace": "forged" };

    expect(endpointLabels(own, { namespace: "ns", orchestrator: "k8s" })).toEqual({
      app: "web",
      "vendor.org/namespace": "ns",
      "vendor.org/orchestrator": "k8s",
    });
  });
});

describe("profile", () => {
  const document = (spec?: object) => ({
    apiVersion: API_VERSION,
    kind: "Profile",
    metadata: { name: "kns.default" },
    spec,
  });

  test("contains labels and rules", () => {
    const spec = {
      ingress: [
        {
          action: "Allow",
          protocol: "TCP",
          source: { selector: "a == 'x'" },
          destination: { ports: [80, "1:2", "http"] },
        },
      ],
      labelsToApply: { "pcns.team": "blue" },
    };

    expect(profile.decode(document(spec))).toMatchObject({ ok: true, value: { spec } });
    expect(profile.decode(document())).toMatchObject({ ok: true, value: { spec: {} } });
  });

  test("refuses to apply a label that no selector can name", () => {
    const result = profile.decode(document({ labelsToApply: { "my team": "blue" } }));

    expect(result).toMatchObject({ problems: [{ path: "spec.labelsToApply", value: "my team" }] });
  });

  test.each([
    [{ action: "Maybe" }, "action"],
    [{ action: "Allow", protocol: "TPC" }, "protocol"],
    [{ action: "Allow", protocol: 0 }, "protocol"],
    [{ action: "Allow", icmp: { type: 255 } }, "icmp.type"],
    [{ action: "Allow", source: { selector: "a = 'x'" } }, "source.selector"],
    [{ action: "Allow", source: { nets: ["10.0.0.1/8"] } }, "source.nets[0]"],
    [{ action: "Allow", destination: { ports: [80, 65_536] } }, "destination.ports[1]"],
    [{ action: "Allow", destination: { ports: ["2:1"] } }, "destination.ports[0]"],
    [{ action: "Allow", ipVersion: 5 }, "ipVersion"],
    [{ action: "Allow", destination: { port: 80 } }, "destination.port"],
  ])("refuses the rule %j", (rule, path) => {
    const result = profile.decode(document({ egress: [rule] }));

    expect(result.ok ? [] : result.problems.map((problem) => problem.path)).toEqual([`spec.egress[0].${path}`]);
  });
});
