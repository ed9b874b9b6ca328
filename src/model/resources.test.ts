import { describe, expect, test } from "bun:test";
import { API_VERSION, identity } from "../identity.ts";
import { formatPrefix } from "../ip/prefix.ts";
import { clusterInformation, clusterVersion, withClusterVersion } from "./cluster-information.ts";
import { ipAddressList } from "./ip-address-list.ts";
import { ipReservation, reservedPrefixes } from "./ip-reservation.ts";
import { DEFAULT_IPAM_CONFIGURATION, ipamConfiguration } from "./ipam-configuration.ts";
import { node } from "./node.ts";
import { profile } from "./profile.ts";
import type { Resource, ResourceCodec } from "./resource.ts";

const document = (kind: string, name: string, spec: object | undefined) => ({
  apiVersion: API_VERSION,
  kind,
  metadata: { name },
  spec,
});

function pathsOf(codec: ResourceCodec<Resource>, value: unknown): readonly string[] {
  const result = codec.decode(value);
  return result.ok ? [] : result.problems.map((problem) => problem.path);
}

describe("ipReservation", () => {
  test("accepts addresses and CIDRs of both families", () => {
    const stored = JSON.stringify(document("IPReservation", "r", { reservedCIDRs: ["10.0.0.1", "fd00::/120"] }));
    const prefixes = reservedPrefixes([ipReservation.read(stored, "key")]);

    expect(prefixes.map(formatPrefix)).toEqual(["10.0.0.1/32", "fd00::/120"]);
  });

  test.each(["10.0.0.1/24", "ten", "10.0.0.1-10.0.0.5"])("refuses %p", (text) => {
    const value = document("IPReservation", "r", { reservedCIDRs: ["10.0.0.1", text] });

    expect(pathsOf(ipReservation, value)).toEqual(["spec.reservedCIDRs[1]"]);
  });

  test("refuses a list in place of its spec, which would reserve nothing", () => {
    expect(pathsOf(ipReservation, document("IPReservation", "r", ["10.0.0.0/30"]))).toEqual(["spec"]);
  });
});

describe("ipAddressList", () => {
  const spec = (addresses: unknown, more: object = {}) => document("IPAddressList", "web", { addresses, ...more });
  const most = Array.from({ length: 1025 }, (_, index) => `10.0.${index >> 8}.${index & 255}`);

  test("keeps the order of its addresses, and is for all namespaces by default", () => {
    const stored = JSON.stringify(spec(["10.0.0.9", "fd00::9", "10.0.0.1"], { namespaceSelector: "" }));

    expect(ipAddressList.read(stored, "key").spec).toEqual({
      addresses: ["10.0.0.9", "fd00::9", "10.0.0.1"],
      namespaceSelector: "all()",
    });
    expect(pathsOf(ipAddressList, spec(most.slice(1)))).toEqual([]);
  });

  test.each([
    ["a network", ["10.0.0.1", "10.0.0.2/32"], "spec.addresses[1]"],
    ["a range", ["10.0.0.1-10.0.0.5"], "spec.addresses[0]"],
    ["a repeated address", ["10.0.0.1", "fd00::1", "10.0.0.1"], "spec.addresses[2]"],
    ["another spelling, which might repeat one", ["fd00:0::1"], "spec.addresses[0]"],
    ["an IPv4 address in the notation of IPv6", ["::ffff:10.0.0.1"], "spec.addresses[0]"],
    ["no address", [], "spec.addresses"],
    ["no list", undefined, "spec.addresses"],
    ["more than 1,024 addresses", most, "spec.addresses"],
  ])("refuses %s", (_, addresses, path) => {
    expect(pathsOf(ipAddressList, spec(addresses))).toEqual([path]);
  });

  test("refuses what is not a selector", () => {
    expect(pathsOf(ipAddressList, spec(["10.0.0.1"], { namespaceSelector: "tenant" }))).toEqual([
      "spec.namespaceSelector",
    ]);
  });
});

describe("ipamConfiguration", () => {
  test("is stored in its own format", () => {
    expect(ipamConfiguration.write(DEFAULT_IPAM_CONFIGURATION)).toBe(
      '{"strict_affinity":false,"auto_allocate_blocks":true,"maxBlocksPerHost":0}',
    );
    expect(ipamConfiguration.read('{"auto_allocate_blocks":true}', "key")).toEqual(DEFAULT_IPAM_CONFIGURATION);
  });

  test("reads absent fields as false, as the writer does", () => {
    expect(ipamConfiguration.read('{"strict_affinity":true,"maxBlocksPerHost":2}', "key").spec).toEqual({
      strictAffinity: true,
      autoAllocateBlocks: false,
      maxBlocksPerHost: 2,
    });
  });

  test("refuses other stored formats", () => {
    expect(() => ipamConfiguration.read('{"strict_affinity":"yes"}', "/the/key")).toThrow("/the/key");
  });

  test("has one name, and refuses a negative limit", () => {
    expect(pathsOf(ipamConfiguration, document("IPAMConfiguration", "mine", { maxBlocksPerHost: 1 }))).toEqual([
      "metadata.name",
    ]);
    for (const maxBlocksPerHost of [-1, 2 ** 31, 1e20]) {
      expect(pathsOf(ipamConfiguration, document("IPAMConfiguration", "default", { maxBlocksPerHost }))).toEqual([
        "spec.maxBlocksPerHost",
      ]);
    }
    for (const cooldownSeconds of [-1, 0.5, 86_401, "60"]) {
      expect(pathsOf(ipamConfiguration, document("IPAMConfiguration", "default", { cooldownSeconds }))).toEqual([
        "spec.cooldownSeconds",
      ]);
    }
    expect(ipamConfiguration.decode(document("IPAMConfiguration", "default", {}))).toEqual({
      ok: true,
      value: DEFAULT_IPAM_CONFIGURATION,
    });
  });
});

describe("clusterInformation", () => {
  test("has the version in a field with the product's name", () => {
    const spec = { clusterGUID: "g", datastoreReady: true, [`${identity.product}Version`]: "v3.29.0" };
    const information = clusterInformation.read(JSON.stringify(document("ClusterInformation", "default", spec)), "key");

    expect(clusterVersion(information)).toBe("v3.29.0");
    expect(clusterVersion(withClusterVersion(information, "v3.30.0"))).toBe("v3.30.0");
    expect(information.spec.datastoreReady).toBe(true);
  });

  test("has no version until one is set", () => {
    expect(clusterVersion(clusterInformation.make({ name: "default" }, {}))).toBeUndefined();
  });
});

describe("node", () => {
  test("does not need a spec", () => {
    expect(node.decode(document("Node", "n", undefined))).toMatchObject({ ok: true, value: { spec: {} } });
  });

  test.each([
    [{ bgp: { ipv4Address: "10.0.0.300" } }, "spec.bgp.ipv4Address"],
    [{ vxlanTunnelMACAddr: "66" }, "spec.vxlanTunnelMACAddr"],
    [{ ipv4VXLANTunnelAddr: "10.0.0.0/26" }, "spec.ipv4VXLANTunnelAddr"],
    [{ addresses: [{ address: "10.0.0.1", typ: "InternalIP" }] }, "spec.addresses[0].typ"],
    [{ bgp: [] }, "spec.bgp"],
    [{ bgp: { asNumber: "sixty" } }, "spec.bgp.asNumber"],
    [{ bgp: { asNumber: -1 } }, "spec.bgp.asNumber"],
    [{ bgp: { asNumber: 4_294_967_296 } }, "spec.bgp.asNumber"],
    [{ bgp: { asNumber: "1.65536" } }, "spec.bgp.asNumber"],
    [{ bgp: { routeReflectorClusterID: "rack-1" } }, "spec.bgp.routeReflectorClusterID"],
    [{ bgp: { routeReflectorClusterID: "1.1.1.1;\n" } }, "spec.bgp.routeReflectorClusterID"],
    [{ bgp: { ipv4Address: "fd00::1/64" } }, "spec.bgp.ipv4Address"],
    [{ ipv6VXLANTunnelAddr: "10.0.0.1" }, "spec.ipv6VXLANTunnelAddr"],
    [{ wireguard: { interfaceIPv6Address: "10.0.0.1" } }, "spec.wireguard.interfaceIPv6Address"],
  ])("refuses %j", (spec, path) => {
    expect(pathsOf(node, document("Node", "n", spec))).toEqual([path]);
  });

  test.each([64_512, "4294967295", "1.10"])("accepts the AS number %p", (asNumber) => {
    expect(pathsOf(node, document("Node", "n", { bgp: { asNumber } }))).toEqual([]);
  });

  test("refuses a list of labels", () => {
    const value = { ...document("Node", "n", {}), metadata: { name: "n", labels: ["rack"] } };

    expect(pathsOf(node, value)).toEqual(["metadata.labels"]);
  });

  test.each(["", "my rack", "räck", "r".repeat(513)])("refuses the label %p, which no selector can name", (label) => {
    const value = { ...document("Node", "n", {}), metadata: { name: "n", labels: { [label]: "a", "x.y/z_1": "" } } };

    expect(node.decode(value)).toMatchObject({ problems: [{ path: "metadata.labels", value: label }] });
  });

  test("reports all types that a field may have", () => {
    const result = node.decode(document("Node", "n", { bgp: { asNumber: true } }));

    expect(result).toMatchObject({ problems: [{ message: "has the wrong type; use a number or a string" }] });
  });
});

describe("every map of names", () => {
  const NAMES = ["constructor", "prototype", "toString", "hasOwnProperty", "__proto__", "plain"];
  // Parsed, as an object literal would take `__proto__` for something else.
  const map: unknown = JSON.parse(`{${NAMES.map((name) => `"${name}":"of ${name}"`)}}`);
  const applied = {
    apiVersion: API_VERSION,
    kind: "Profile",
    metadata: { name: "p", labels: map, annotations: map, ownerReferences: [map] },
    spec: {
      labelsToApply: map,
      ingress: [{ action: "Allow", metadata: { annotations: map } }],
    },
  };

  test("keeps names of built-in object members", () => {
    const decoded = profile.decode(applied);
    const text = decoded.ok ? profile.write(decoded.value) : "";

    expect(text.match(/"constructor":"of constructor","prototype"/g)).toHaveLength(5);
    for (const name of NAMES) expect(text.match(new RegExp(`"${name}":"of ${name}"`, "g"))).toHaveLength(5);
    expect(profile.write(profile.read(text, "key"))).toBe(text);
  });

  test.each(NAMES)("reports the path of a wrong value: %s", (name) => {
    const wrong: unknown = JSON.parse(`{"a":"right","${name}":5}`);

    expect(pathsOf(profile, { ...applied, metadata: { name: "p", labels: wrong } })).toEqual([
      `metadata.labels.${name}`,
    ]);
  });

  test("is not a list or a string", () => {
    expect(pathsOf(profile, { ...applied, metadata: { name: "p", labels: ["a"] } })).toEqual(["metadata.labels"]);
    expect(pathsOf(profile, { ...applied, metadata: { name: "p", labels: "a" } })).toEqual(["metadata.labels"]);
  });
});

describe("labels", () => {
  const labelled = (labels: Record<string, string>) =>
    pathsOf(profile, { ...document("Profile", "p", { labelsToApply: labels }), metadata: { name: "p", labels } });

  test("may be as long as in selectors, their values as long as names", () => {
    expect(labelled({ ["k".repeat(512)]: "v".repeat(253), "pcns.example.org/zone": "" })).toEqual([]);
  });

  test.each([
    ["k".repeat(513), "v", ""],
    ["a b", "v", ""],
    ["a", "v".repeat(254), ".a"],
  ])("are refused if they are longer, or not labels: %j", (key, value, path) => {
    expect(labelled({ [key]: value })).toEqual([`metadata.labels${path}`, `spec.labelsToApply${path}`]);
  });
});
