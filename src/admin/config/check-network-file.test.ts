import { describe, expect, test } from "bun:test";
import { BAD_INPUTS } from "../../../test/support/bad-inputs.ts";
import { configHost } from "../../../test/support/config-host.ts";
import { MARK, PLACES_FOR_SECRETS, VALUES_WITH_SECRETS } from "../../../test/support/marked-secrets.ts";
import { withField } from "../../../test/support/network-config.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { resourceKey } from "../../model/keys.ts";
import { poolsIn } from "../ipam/pools.ts";
import { checkNetworkFile } from "./check-network-file.ts";

describe("checkNetworkFile()", () => {
  test("is tried with at least thirty bad inputs", () => {
    expect(BAD_INPUTS.length).toBeGreaterThanOrEqual(30);
  });

  test.each([...BAD_INPUTS])("reports $wrong", async ({ text, path, says }) => {
    const { findings } = await checkNetworkFile(text, { host: configHost() });
    const errors = findings.filter(({ severity }) => severity === "error");

    expect(errors.map((finding) => finding.path)).toEqual([path]);
    for (const words of says) expect(errors[0]?.message).toContain(words);
    expect(JSON.stringify(findings)).not.toContain("secret");
  });

  test("reports all problems of the list at once, and those of our plugin in it", async () => {
    const list = {
      name: "a b",
      cniVersion: "0.2.0",
      disableCheck: "maybe",
      plugins: [{ type: identity.product, num_queues: -1 }, { type: 5, capabilities: [] }, "x", {}],
    };
    const { findings } = await checkNetworkFile(JSON.stringify(list, undefined, 1), { host: configHost() });

    expect(findings.map(({ path }) => path)).toEqual([
      "name",
      "cniVersion",
      "disableCheck",
      "plugins[0].ipam",
      "plugins[0].num_queues",
      "plugins[1].type",
      "plugins[1].capabilities",
      "plugins[2]",
      "plugins[3].type",
      "plugins[3].ipam",
    ]);
  });

  test("warns about a field that is given more than once", async () => {
    const text = JSON.stringify(withField("mtu", 1400)).replace("{", '{"mtu":1500,');
    const { findings } = await checkNetworkFile(text, { host: configHost() });

    expect(findings).toMatchObject([{ severity: "warning", path: "mtu" }]);
  });

  test("reports a policy type without access to the orchestrator's API, except for containers of one host", async () => {
    const policy = { type: "k8s" };
    const errorsOf = async (more: object) => {
      const config = { ...withField("policy", policy), ...more };
      const { findings } = await checkNetworkFile(JSON.stringify(config), {});
      return findings.filter(({ severity }) => severity === "error").map(({ path, message }) => ({ path, message }));
    };

    const refused = [{ path: "policy.type", message: expect.stringContaining('set "kubernetes.kubeconfig"') }];
    expect(await errorsOf({})).toEqual(refused);
    expect(await errorsOf({ datastore_type: "etcdv3" })).toEqual(refused);
    expect(await errorsOf({ datastore_type: "embedded" })).toEqual([]);
    expect(await errorsOf({ kubernetes: { kubeconfig: "/etc/kubeconfig" } })).toEqual([]);
    expect(await errorsOf({ policy: { ...policy, k8s_api_root: "https://192.0.2.1:6443" } })).toEqual([]);
  });

  describe("compares the config with the host", () => {
    const found = async (fields: object, host = configHost()) => {
      const config = {
        name: "pods",
        cniVersion: "1.0.0",
        type: identity.product,
        ipam: { type: identity.ipamType },
        ...fields,
      };
      const alone = await checkNetworkFile(JSON.stringify(config), { host });
      const list = await checkNetworkFile(JSON.stringify({ name: "pods", cniVersion: "1.0.0", plugins: [config] }), {
        host,
      });
      const text = ({ severity, path }: { severity: string; path: string }) => `${severity} ${path}`;
      expect(list.findings.map(text)).toEqual(
        alone.findings.map((each) => text({ ...each, path: `plugins[0].${each.path}` })),
      );
      return alone.findings.map(({ severity, path, message }) => `${severity} ${path}: ${message}`);
    };
    const HOST_LOCAL = { type: "host-local", assign_ipv6: "true", ranges: [[{ subnet: "10.1.0.0/16" }]] };
    const ipv6 = { ipam: { type: identity.ipamType, assign_ipv6: "true" } };

    test.each([
      ["IPv6", { mtu: 1279, ...ipv6 }, [/^error mtu: .*at least 1280/]],
      ["IPv6", { mtu: 1280, ...ipv6 }, []],
      ["IPv6 of another IPAM", { mtu: 1279, ipam: HOST_LOCAL }, []],
      ["IPv4", { mtu: 99 }, [/^warning mtu: .*576/]],
      ["IPv4", { mtu: 576 }, []],
    ])("an MTU that is too small for %s: %j", async (_, fields, says) => {
      expect(await found(fields)).toEqual(says.map((pattern) => expect.stringMatching(pattern)));
    });

    test("a log file that is a directory", async () => {
      const host = configHost({ isDirectory: async (path) => path === "/var/log/" });

      expect(await found({ log_file_path: "/var/log/" }, host)).toEqual([
        expect.stringMatching(/^warning log_file_path: .*a directory.*"\/var\/log\/cni\.log"$/),
      ]);
      expect(await found({ log_file_path: "/var/log/cni.log" }, host)).toEqual([]);
    });

    test("pools that do not exist, or that are disabled or of the other family", async () => {
      const ipam = {
        ...{ type: identity.ipamType, assign_ipv6: "true" },
        ...{ ipv4_pools: ["blue", "10.1.0.0/16", "none", "off"], ipv6_pools: ["blue"] },
      };
      const host = configHost({
        readPools: async () =>
          poolsIn([poolEntry("blue", "10.1.0.0/16"), poolEntry("off", "10.2.0.0/16", { disabled: true })]),
      });

      expect(await found({ ipam }, host)).toEqual([
        expect.stringMatching(/^error ipam\.ipv4_pools\[2\]: .*"none": no such pool/),
        expect.stringMatching(/^error ipam\.ipv4_pools\[3\]: .*"off": it is disabled/),
        expect.stringMatching(/^error ipam\.ipv6_pools\[0\]: .*"blue": it is of IPv4/),
      ]);
    });

    test("pools together, as the plugin does: one that workloads may use is enough", async () => {
      const host = configHost({
        readPools: async () =>
          poolsIn([poolEntry("tun", "10.1.0.0/16", { allowedUses: ["Tunnel"] }), poolEntry("pods", "10.2.0.0/16")]),
      });
      const foundIn = (...ipv4_pools: readonly string[]) =>
        found({ ipam: { type: identity.ipamType, ipv4_pools } }, host);

      expect(await foundIn("tun", "pods")).toEqual([]);
      expect(await foundIn("tun")).toEqual([
        expect.stringMatching(/^error ipam\.ipv4_pools: .*"tun" allows the use "Workload"/),
      ]);
      expect(await foundIn("tun", "gone")).toEqual([expect.stringMatching(/^error ipam\.ipv4_pools\[1\]: /)]);
    });

    test("pools of the families that are assigned, because others are not read", async () => {
      const pools = { ipv4_pools: ["gone"], ipv6_pools: ["gone"] };
      const errorsOf = async (ipam: object) =>
        (await found({ ipam: { type: identity.ipamType, ...pools, ...ipam } })).filter((text) =>
          text.startsWith("error"),
        );

      expect(await errorsOf({ assign_ipv4: "false", assign_ipv6: "true" })).toEqual([
        expect.stringContaining("ipam.ipv6_pools[0]"),
      ]);
      expect(await errorsOf({})).toEqual([expect.stringContaining("ipam.ipv4_pools[0]")]);
    });

    test("pools of a datastore that cannot be read are a note", async () => {
      const host = configHost({ readPools: async () => ({ reason: `http://u:${MARK}@host does not answer` }) });
      const notes = await found({ ipam: { type: identity.ipamType, ipv4_pools: ["blue", "red"] } }, host);

      expect(notes).toEqual([expect.stringMatching(/^note ipam\.ipv4_pools\[0\]: .*does not answer/)]);
      expect(notes.join()).not.toContain(MARK);
    });

    test("and shows the effective config if only the host lacks something", async () => {
      const ipam = { type: identity.ipamType, ipv4_pools: ["gone"] };
      const effectiveOf = async (config: object) => {
        const { findings, effective } = await checkNetworkFile(JSON.stringify(config), { host: configHost() });
        expect(findings.some(({ severity }) => severity === "error")).toBe(true);
        return effective;
      };

      expect(await effectiveOf(withField("ipam", ipam))).toMatchObject({ num_queues: 1, ipam });
      expect(await effectiveOf({ ...withField("ipam", ipam), num_queues: -1 })).toBeUndefined();
    });

    test("nothing of it for another host", async () => {
      const config = { ...withField("ipam", { type: "elsewhere", ipv4_pools: ["none"] }), log_file_path: "/" };

      expect(
        (await checkNetworkFile(JSON.stringify(config), {})).findings.map(({ severity }) => severity),
      ).not.toContain("error");
    });

    function poolEntry(name: string, cidr: string, more: object = {}) {
      const value = JSON.stringify({
        apiVersion: API_VERSION,
        kind: "IPPool",
        metadata: { name },
        spec: { cidr, ...more },
      });
      return { key: resourceKey("ippools", { name }), value, revision: "1" };
    }
  });

  test.each(PLACES_FOR_SECRETS)("shows no secret of %s, in a config or in a list", async (field) => {
    for (const value of VALUES_WITH_SECRETS) {
      const config = withField(field, value);
      for (const file of [config, { name: "pods", cniVersion: "1.0.0", plugins: [config], more: value }]) {
        const report = await checkNetworkFile(JSON.stringify(file), { host: configHost() });
        expect(JSON.stringify(report)).not.toContain(MARK);
      }
    }
  });
});
