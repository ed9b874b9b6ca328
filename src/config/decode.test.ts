import { describe, expect, test } from "bun:test";
import { decode, MINIMAL, problemsOf, withField } from "../../test/support/network-config.ts";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { identity } from "../identity.ts";
import { decodeNetworkConfig, requireNetworkConfig } from "./decode.ts";
import { pathText } from "./problem.ts";
import { unknownKeyText } from "./unknown-key.ts";

describe("decodeNetworkConfig()", () => {
  test("accepts the minimal config", () => {
    expect(decodeNetworkConfig(MINIMAL)).toMatchObject({ ok: true, warnings: [], unknownKeys: [] });
  });

  test("reports several problems together", () => {
    const problems = problemsOf({ log_level: "verbose", ipam: { assign_ipv4: true }, num_queues: -1 });

    expect(Object.keys(problems).sort()).toEqual(
      ["ipam.assign_ipv4", "ipam.type", "log_level", "name", "num_queues", "type"].sort(),
    );
  });

  test.each([[null], [[]], ["text"], [7]])("refuses %p, which is not an object", (raw) => {
    expect(decodeNetworkConfig(raw).ok).toBe(false);
  });

  test.each([
    ["ipv4_pools", ["10.0.0.0/16", "fd00::/48"], "ipam.ipv4_pools[1]"],
    ["ipv4_pools", ["10.0.0.0/33"], "ipam.ipv4_pools[0]"],
    ["ipv4_pools", ["10.0.0.300/24"], "ipam.ipv4_pools[0]"],
    ["ipv4_pools", ["10.0.0.1"], "ipam.ipv4_pools[0]"],
    ["ipv6_pools", ["10.0.0.0/16"], "ipam.ipv6_pools[0]"],
    ["ipv6_pools", ["fd00::/129"], "ipam.ipv6_pools[0]"],
    ["ipv6_pools", ["fd00:::/64"], "ipam.ipv6_pools[0]"],
    ["ipv4_pools", [4], "ipam.ipv4_pools[0]"],
  ])("names the invalid entry of %s: %p", (field, pools, place) => {
    expect(Object.keys(problemsOf(withField(`ipam.${field}`, pools)))).toEqual([place]);
  });

  test.each([[["localhost:9099"]], [["ftp://host/"]], [["http://"]], [[""]]])("refuses readiness gates %p", (gates) => {
    expect(Object.keys(problemsOf(withField("readiness_gates", gates)))).toEqual(["readiness_gates[0]"]);
  });

  test("refuses endpoints together with discovery", () => {
    const both = { ...MINIMAL, etcd_endpoints: "http://a:2379", etcd_discovery_srv: "example.org" };

    expect(Object.keys(problemsOf(both))).toEqual(["etcd_discovery_srv"]);
  });

  test("refuses a certificate without its key, and a key without its certificate", () => {
    expect(Object.keys(problemsOf({ ...MINIMAL, etcd_cert_file: "/c" }))).toEqual(["etcd_cert_file"]);
    expect(Object.keys(problemsOf({ ...MINIMAL, etcd_key_file: "/k", etcd_cert_file: "" }))).toEqual(["etcd_key_file"]);
  });

  test("accepts zero values, which other tools write for absent ones", () => {
    const zeros = {
      mtu: 0,
      num_queues: 0,
      etcd_key_file: "",
      hostname: "",
      readiness_gates: null,
      RuntimeConfig: { DNS: {} },
      policy: { type: "", k8s_api_root: "" },
      kubernetes: null,
      ipam: { Name: "", type: identity.ipamType, assign_ipv4: null, ipv4_pools: null, subnet: "" },
    };
    const decoded = decodeNetworkConfig({ ...MINIMAL, ...zeros });

    expect(decoded).toMatchObject({ ok: true, unknownKeys: [], warnings: [] });
    expect(decode(zeros)).toEqual({ ...decode({}), ipam: { ...decode({}).ipam, asGiven: zeros.ipam } });
  });

  test("reads keys in any case, the exact spelling first", () => {
    expect(decode({ Log_Level: "DEBUG" }).log.level).toBe("DEBUG");
    expect(decode({ LOG_LEVEL: "ERROR", log_level: "DEBUG" }).log.level).toBe("DEBUG");
    expect(decode({ LOG_LEVEL: "ERROR", Log_Level: "DEBUG" }).log.level).toBe("INFO");
  });

  test("returns unknown keys with the nearest known name, and never their value", () => {
    const decoded = decodeNetworkConfig({ ...MINIMAL, log_levle: "MARK", zzz: { a: 1 }, policy: { typ: "MARK" } });

    expect(decoded.unknownKeys).toEqual([["log_levle"], ["zzz"], ["policy", "typ"]]);
    expect(decoded.unknownKeys.map(unknownKeyText).map((text) => /mean "(\w+)"/.exec(text)?.[1])).toEqual([
      "log_level",
      undefined,
      "type",
    ]);
    expect(decoded.unknownKeys.map(unknownKeyText).join()).not.toContain("MARK");
  });

  test("ignores CNI's own keys and another IPAM plugin's fields", () => {
    const ipam = {
      type: "host-local",
      ranges: [[{ subnet: "usePodCidr" }]],
      dataDir: "/x",
      routes: [{ dst: "0.0.0.0/0" }],
    };
    const decoded = decodeNetworkConfig({
      ...MINIMAL,
      ipam,
      runtimeConfig: {},
      prevResult: {},
      args: {},
      "cni.dev/attachments": [],
    });

    expect(decoded.unknownKeys).toEqual([]);
    expect(decode({ ipam }).ipam.asGiven).toEqual(ipam);
  });

  test.each([
    [{ etcd_authority: "a:1" }, "remove it"],
    [{ etcd_authority: "a:1", etcd_scheme: "http" }, "remove them"],
  ])("says what to do about %j together with endpoints", (fields, advice) => {
    const { warnings } = decodeNetworkConfig({ ...MINIMAL, etcd_endpoints: "http://b:2", ...fields });

    expect(warnings.map(({ message }) => message)).toEqual([expect.stringContaining(`is set: ${advice}`)]);
  });

  test("uses ipv6_pools only if IPv6 is assigned, and warns otherwise", () => {
    const decoded = decodeNetworkConfig(withField("ipam.ipv6_pools", ["fd00::/48"]));

    expect(decoded).toMatchObject({ ok: true, config: { ipam: { ipv6Pools: undefined } } });
    expect(decoded.warnings.map(({ path }) => pathText(path))).toEqual(["ipam.ipv6_pools"]);
  });

  test.each([
    [{ etcd_authority: "a:1" }, ["etcd_authority"]],
    [{ etcd_authority: "a:1", etcd_scheme: "https" }, ["etcd_authority"]],
    [{ etcd_scheme: "https", etcd_endpoints: "http://a:1" }, ["etcd_scheme"]],
    [{ etcd_endpoints: "http://a:1", etcd_ca_cert_file: "/ca" }, ["etcd_ca_cert_file"]],
    [{ log_file_path: "cni.log" }, ["log_file_path"]],
    [{ cniVersion: "" }, ["cniVersion"]],
    [{ ipam: { type: identity.ipamType, assign_ipv4: "false" } }, ["ipam.assign_ipv4"]],
    [{ policy: { type: "k8s" }, policy_setup_timeout_seconds: 10, endpoint_status_dir: "/run/a" }, []],
    [{ feature_control: { ip_addrs_no_ipam: true } }, ["feature_control.ip_addrs_no_ipam"]],
    [{ feature_control: { floating_ips: true, ip_addrs_no_ipam: false } }, ["feature_control.floating_ips"]],
    [{ feature_control: { allowed_source_prefixes: true } }, ["feature_control.allowed_source_prefixes"]],
    [{ feature_control: { cluster_source_prefixes: ["10.0.0.0/24"] } }, ["feature_control.cluster_source_prefixes"]],
    [{ kubernetes: { kubeconfig: "/etc/kubeconfig" }, feature_control: { floating_ips: true } }, []],
    [{ policy: { k8s_api_root: "https://a:1" }, feature_control: { ip_addrs_no_ipam: true } }, []],
    [{ datastore_type: "kubernetes", feature_control: { ip_addrs_no_ipam: true } }, []],
  ])("warns once about %p", (more, places) => {
    const decoded = decodeNetworkConfig({ ...MINIMAL, ...more });

    expect(decoded.ok).toBe(true);
    expect(decoded.warnings.map(({ path }) => pathText(path))).toEqual(places);
  });
});

describe("requireNetworkConfig()", () => {
  test("throws one error with every problem", () => {
    const failure = thrownBy(() => requireNetworkConfig({ ...MINIMAL, log_level: "verbose", num_queues: -1 }));

    expect(failure.kind).toBe("config-invalid");
    expect(failure.message).toContain("log_level");
    expect(failure.message).toContain("num_queues");
  });

  test("returns the config", () => {
    expect(requireNetworkConfig(MINIMAL).config.name).toBe("pods");
  });
});
