import { describe, expect, test } from "bun:test";
import { POD_ANNOTATIONS } from "../../config/capabilities.ts";
import { BANDWIDTH_ENTRY } from "../../config/installed-network-list.ts";
import { identity } from "../../identity.ts";
import { checkNetworkFile } from "./check-network-file.ts";

const OURS = { type: identity.product, ipam: { type: identity.ipamType } };
const PORTMAP = { type: "portmap", capabilities: { portMappings: true } };
const BANDWIDTH = { type: "bandwidth", capabilities: { bandwidth: true } };

async function check(file: object): Promise<readonly string[]> {
  const { findings } = await checkNetworkFile(JSON.stringify(file), {});
  return findings.map(({ severity, path, message }) => `${severity} ${path}: ${message}`);
}

function checkList(...plugins: readonly object[]): Promise<readonly string[]> {
  return check({ name: "pods", cniVersion: "1.0.0", plugins });
}

describe("checkChain()", () => {
  test("warns about a capability that our plugin cannot use", async () => {
    const declared = { ips: true, mac: true, portMappings: true, aliases: true, bandwidth: false };
    const refused = (name: string) =>
      `warning plugins[0].capabilities.${name}: plugins[0]: "${identity.product}" does not support the capability "${name}", and refuses an ADD that uses it`;
    expect(await checkList({ ...OURS, capabilities: declared }, PORTMAP)).toEqual([
      `${refused("portMappings")}: declare the capability "portMappings" in the entry of "portmap", and remove it from this one`,
      `${refused("aliases")}: remove the capability "aliases" from the entry of "${identity.product}"`,
    ]);
    expect(await checkList({ ...OURS, capabilities: { ipRanges: true } })).toHaveLength(1);
  });

  test("warns about a log option of a chained plugin that cannot be used", async () => {
    expect(await checkList(OURS, { ...PORTMAP, log_level: "verbose", log_file_path: "/var/log/ports.log" })).toEqual([
      'warning plugins[1].log_level: plugins[1]: "log_level" is "verbose": expected "ERROR", "WARNING", "INFO" or "DEBUG"; INFO is used',
    ]);
  });

  test("accepts the chain that is installed", async () => {
    expect(await checkList(OURS, PORTMAP, BANDWIDTH)).toEqual([]);
  });

  test.each([
    ["portmap", PORTMAP],
    ["bandwidth", BANDWIDTH],
  ])("%s must follow the plugin that creates the interface", async (type, config) => {
    expect(await checkList(config, OURS)).toEqual([
      `error plugins[0].type: plugins[0]: "${type}" must follow the plugin that creates the interface, in a list of plugins: move it after "${identity.product}"`,
      `error plugins[1].type: plugins[1]: "${identity.product}" creates the interface and does not use the result of a previous plugin: make it the first plugin of the list, and the only one of its type`,
    ]);
    expect(await check({ name: "pods", cniVersion: "1.0.0", ...config })).toEqual([
      `error type: "${type}" must follow the plugin that creates the interface, in a list of plugins: write a list of plugins that begins with "${identity.product}"`,
    ]);
  });

  test.each([
    ["backend", "iptables", 'Cannot use "backend": "iptables": the only backend is "nftables"'],
    ["snat", "yes", '"snat" is "yes", not true or false'],
    ["markMasqBit", 32, 'Cannot use "markMasqBit": 32'],
    ["externalSetMarkChain", "MARK", 'Cannot use "externalSetMarkChain"'],
    ["conditionsV4", ["-s", "10.0.0.0/8"], 'Cannot use "conditionsV4"'],
  ])("reports the option %s of portmap that a call would refuse", async (name, value, says) => {
    const [finding, ...others] = await checkList(OURS, { ...PORTMAP, [name]: value });

    expect(finding).toStartWith(`error plugins[1].${name}: plugins[1]: ${says}`);
    expect(others).toEqual([]);
  });

  test("reports every refused option", async () => {
    expect(await checkList(OURS, { ...PORTMAP, snat: 1, backend: "ipvs", masqAll: "x" })).toHaveLength(3);
  });

  test.each([
    [{ ingressRate: 1_000_000 }, "ingressRate", "ingressRate is set without ingressBurst"],
    [{ egressBurst: 1_000_000 }, "egressBurst", "egressBurst is set without egressRate"],
    [{ egressRate: "1M", egressBurst: 8 }, "egressRate", 'egressRate is "1M", not a whole number'],
    [{ IngressRate: 7, IngressBurst: 8 }, "ingressRate", "ingressRate is 7: the minimum is 8"],
    [{ shapedSubnets: ["10.0.0.0/8"] }, "shapedSubnets", "shapedSubnets is"],
  ])("reports the rates %p of bandwidth", async (rates, field, says) => {
    const found = await checkList(OURS, { ...BANDWIDTH, ...rates });

    expect(found).toEqual([expect.stringContaining(`error plugins[1].${field}: plugins[1]: `)]);
    expect(found[0]).toContain(says);
  });

  test.each([
    ["portmap", "portMappings"],
    ["bandwidth", "bandwidth"],
  ])("warns if %s lacks the capability by which the runtime passes its requests", async (type, capability) => {
    for (const capabilities of [undefined, {}, { [capability]: false }]) {
      const found = await checkList(OURS, { type, capabilities });

      expect(found).toEqual([expect.stringMatching(/^warning plugins\[1\]/)]);
      expect(found[0]).toContain(`add "capabilities": { "${capability}": true }`);
    }
  });

  test("notes that bandwidth on an orchestrator lacks the capability for annotations under the other name", async () => {
    const ours = { ...OURS, kubernetes: { kubeconfig: "/etc/kubeconfig" } };
    const found = await checkList(ours, BANDWIDTH);
    expect(found).toEqual([expect.stringMatching(/^note plugins\[1\]\.capabilities: .*orchestrator\.io\/.*no effect/)]);
    expect(found[0]).toContain(`add "capabilities": { "${POD_ANNOTATIONS}": true }`);

    expect(await checkList(ours, BANDWIDTH_ENTRY)).toEqual([]);
    // Without an orchestrator there are no annotations, and rates in the config come first.
    expect(await checkList(OURS, BANDWIDTH)).toEqual([]);
    expect(await checkList(ours, { ...BANDWIDTH, ingressRate: 1_000_000, ingressBurst: 1_000_000 })).toEqual([]);
  });

  test("bandwidth with rates in the config needs no capability", async () => {
    expect(await checkList(OURS, { type: "bandwidth", ingressRate: 1_000_000, ingressBurst: 1_000_000 })).toEqual([]);
  });

  test.each([
    [{}, "plugins[0].ipam", '"ipam.ranges" is missing: at least one range is required'],
    [{ ranges: [[]] }, "plugins[0].ipam.ranges[0]", "at least one range"],
    [{ ranges: [[{ subnet: "10.0.0.1/24" }]] }, "plugins[0].ipam.ranges[0][0].subnet", "host bits"],
    [{ subnet: "10.0.0.0/31" }, "plugins[0].ipam.subnet", "too small"],
  ])("reports the ranges %p of host-local", async (fields, path, says) => {
    for (const type of [identity.product, "bridge"]) {
      const found = await checkList({ type, ipam: { type: "host-local", ...fields } });
      const [error] = found.filter((finding) => finding.startsWith("error"));

      expect(error).toStartWith(`error ${path}`);
      expect(error).toContain(says);
    }
  });

  test("accepts the range of the Node in our own plugin, with access to the orchestrator's API alone", async () => {
    const ipam = { type: "host-local", ranges: [[{ subnet: "usePodCidr" }], [{ subnet: "usePodCidrIPv6" }]] };
    const kubernetes = { kubeconfig: "/etc/kubernetes/kubeconfig" };
    const errorsOf = async (entry: object) =>
      (await checkList({ ipam, ...entry })).filter((finding) => finding.startsWith("error"));

    expect(await errorsOf({ type: identity.product, kubernetes })).not.toContainEqual(expect.stringContaining("ipam"));
    expect(await errorsOf({ type: identity.product })).toEqual([expect.stringContaining("does not give access")]);
    expect(await errorsOf({ type: "bridge", kubernetes })).toEqual([expect.stringContaining("it must be a subnet")]);
  });

  test("accepts host-local without ranges if the runtime passes them", async () => {
    const capabilities = { ipRanges: true };

    expect(await checkList({ type: identity.product, capabilities, ipam: { type: "host-local" } })).toEqual([]);
  });

  test.each(["orchestrator", "kubernetes"])("requires access to the API if it is the datastore (%s)", async (given) => {
    const missing = '"datastore_type" is the Kubernetes API: the config does not say where the Kubernetes API is';

    expect(await checkList({ ...OURS, datastore_type: given })).toEqual([
      `error plugins[0].datastore_type: plugins[0]: ${missing}; set "kubernetes.kubeconfig"`,
    ]);
    for (const kubernetes of [{ kubeconfig: "/etc/kubernetes/kubeconfig" }, { k8s_api_root: "https://a:6443" }]) {
      expect(await checkList({ ...OURS, datastore_type: given, kubernetes })).toEqual([]);
    }
  });

  test.each([
    ["tuning", "note", '"tuning" is a plugin of another project: its fields are not checked'],
    ["acme-mesh", "note", '"acme-mesh" is not a known plugin: its fields are not checked'],
    ["portmpa", "warning", 'did you mean "portmap"?'],
  ])("says that the fields of %s are not checked", async (type, severity, says) => {
    const found = await checkList(OURS, { type, backend: "x" });

    expect(found).toEqual([expect.stringContaining(`${severity} plugins[1].type`)]);
    expect(found[0]).toContain(says);
  });

  test.each([
    ["dhcp", "note", '"dhcp" is an IPAM plugin of another project: its fields are not checked'],
    ["acme-ipam2", "note", '"acme-ipam2" is not a known IPAM plugin: its fields are not checked'],
    ["host-locl", "warning", 'did you mean "host-local"?'],
    [identity.ipamType.slice(0, -1), "warning", `did you mean "${identity.ipamType}"?`],
  ])("says that the fields of the IPAM plugin %s are not checked", async (type, severity, says) => {
    const found = await checkList({ ...OURS, ipam: { type } });

    expect(found).toEqual([expect.stringContaining(`${severity} plugins[0].ipam.type`)]);
    expect(found[0]).toContain(says);
  });
});
