import { describe, expect, test } from "bun:test";
import { identity } from "../../identity.ts";
import { type CniHost, type CniRuntime, checkPlugins, checkVersions } from "./check-cni-host.ts";

const OLD: CniRuntime = { name: "podman", readsSeveralVersions: false, newestVersion: "1.0.0" };
const NEW: CniRuntime = { name: "containerd", readsSeveralVersions: true, newestVersion: "1.1.0" };
const host = (...runtimes: readonly CniRuntime[]): CniHost => ({
  runtimes,
  pluginDirectories: [],
  plugins: new Set(),
  unreadable: [],
});
const PLUGINS = [{ type: identity.product }, { type: "portmap" }];
const BOTH = ["1.0.0", "1.1.0"];

describe("checkVersions()", () => {
  test.each([
    ["a version that the runtime knows", { cniVersion: "1.0.0", cniVersions: BOTH }, host(OLD, NEW), []],
    ["several versions for a runtime that reads them", { cniVersion: "9.0.0", cniVersions: BOTH }, host(NEW), []],
    ["an unknown version beside known ones", { cniVersion: "9.0.0", cniVersions: BOTH }, host(OLD), ["error"]],
    [
      "the same, with a runtime that accepts it",
      { cniVersion: "9.0.0", cniVersions: BOTH },
      host(OLD, NEW),
      ["warning"],
    ],
    ["the same, on an unknown host", { cniVersion: "9.0.0", cniVersions: BOTH }, undefined, ["warning"]],
    ["no version beside known ones", { cniVersions: BOTH, plugins: PLUGINS }, host(OLD), ["warning"]],
    ["no version for one plugin", { cniVersions: BOTH, plugins: PLUGINS.slice(0, 1) }, host(OLD), []],
    ["a version that is too new", { cniVersion: "1.1.0" }, host(OLD), ["warning"]],
    ["a version that may be too new, on an unknown host", { cniVersion: "1.1.0" }, undefined, []],
    ["an unknown version alone, which is reported elsewhere", { cniVersion: "9.0.0" }, host(OLD), []],
  ])("%s", (_, raw, where, severities) => {
    const findings = checkVersions(raw, where);

    expect(findings.map(({ severity }) => severity)).toEqual(severities as never);
    for (const { path, message } of findings) {
      expect(path).toEqual(["cniVersion"]);
      expect(message).toEndWith('set "cniVersion" to "1.0.0"');
    }
  });

  test("names the runtimes that refuse it", () => {
    const [found] = checkVersions({ cniVersion: "9.0.0", cniVersions: BOTH }, host(OLD, NEW));

    expect(found?.message).toStartWith("podman of this host refuses the network: ");
  });

  test.each([
    [
      { cniVersion: "1.1.0" },
      'podman and crio of this host refuse the network: "cniVersion" is "1.1.0", but podman knows only 1.0.0 and earlier, and crio knows only 0.4.0 and earlier; set "cniVersion" to "0.4.0"',
    ],
    [
      { cniVersion: "9.0.0", cniVersions: BOTH },
      'podman and crio of this host refuse the network: "cniVersion" is "9.0.0", but podman does not know it and does not read "cniVersions", and crio does not know it and does not read "cniVersions"; set "cniVersion" to "0.4.0"',
    ],
  ])("tells the reason of each runtime: %j", (raw, message) => {
    const older: CniRuntime = { ...OLD, name: "crio", newestVersion: "0.4.0" };

    expect(checkVersions(raw, host(OLD, NEW, older)).map((found) => found.message)).toEqual([message]);
  });
});

describe("checkPlugins()", () => {
  const installed: CniHost = {
    runtimes: [],
    pluginDirectories: ["/opt/cni/bin", "/usr/lib/cni"],
    plugins: new Set([identity.product, "portmap", "bandwidth", "host-local", "dhcp"]),
    unreadable: [],
  };
  const check = (where: CniHost, ...entries: readonly object[]) =>
    checkPlugins(
      entries.map((entry, index) => ({ entry, place: ["plugins", index] })),
      where,
    ).map(({ severity, path, message }) => `${severity} ${path.slice(2).join(".")} ${message}`);
  const ours = (ipam: string) => ({ type: identity.product, ipam: { type: ipam } });

  test("accepts what is installed, and IPAM that the plugin serves itself", () => {
    expect(check(installed, ours(identity.ipamType), { type: "portmap" }, { type: "bandwidth" })).toEqual([]);
    expect(check(installed, ours("dhcp"))).toEqual([]);
  });

  test("refuses a misspelt IPAM plugin and a misspelt chained plugin", () => {
    const [ipam, chained] = check(installed, ours(`${identity.ipamType}x`), { type: "bandwith" });

    expect(ipam).toBe(
      `error ipam.type "${identity.ipamType}x" is in no plugin directory (/opt/cni/bin, /usr/lib/cni), so every ADD fails: did you mean "${identity.ipamType}"? If it is elsewhere, name its directory in CNI_PATH`,
    );
    expect(chained).toMatch(/^error type .* did you mean "bandwidth"\?/);
  });

  test("refuses an IPAM plugin that is not installed, and warns about a chained plugin of another project", () => {
    expect(check(installed, ours("elsewhere"), { type: "tuning" })).toEqual([
      expect.stringMatching(/^error ipam\.type "elsewhere" .*CNI_PATH$/),
      expect.stringMatching(/^warning type "tuning" .* install it, or correct the type.*CNI_PATH$/),
    ]);
  });

  test("does not suggest the type itself", () => {
    const bridge = { type: "bridge", ipam: { type: identity.ipamType } };
    const withBridge = { ...installed, plugins: new Set([...installed.plugins, "bridge"]) };
    const without = { ...installed, plugins: new Set(["bridge"]) };

    expect(check(withBridge, bridge)).toEqual([
      expect.stringMatching(/^error ipam\.type .*: install it, or correct the type/),
    ]);
    expect(check(without, bridge)).toEqual([
      expect.stringMatching(/^warning ipam\.type .* not installed on this host$/),
    ]);
  });

  test("warns once if the product is not installed", () => {
    const without = { ...installed, plugins: new Set(["dhcp"]) };

    expect(check(without, ours(identity.ipamType), { type: "portmap" })).toEqual([
      expect.stringMatching(/^warning type .* not installed on this host$/),
    ]);
  });

  test.each([
    ["a chained plugin", { type: "tuning" }],
    ["an IPAM plugin", ours("elsewhere")],
  ])("only notes that %s was not found if it could not look everywhere", (_, entry) => {
    const hidden = { ...installed, unreadable: ["/root/cni", "/etc/containerd/config.toml"] };

    expect(check(hidden, entry)).toEqual([
      expect.stringMatching(/^note .*could not look into \/root\/cni and \/etc\/containerd\/config\.toml/),
    ]);
    expect(check({ ...hidden, pluginDirectories: [], plugins: new Set() }, { type: identity.product })).toEqual([
      expect.stringMatching(/^note type .*could not look into \/root\/cni/),
    ]);
    expect(check(hidden, ours(identity.ipamType))).toEqual([]);
  });

  test("says nothing on a host without plugin directories", () => {
    expect(check({ ...installed, pluginDirectories: [], plugins: new Set() }, ours("nothing"))).toEqual([]);
  });
});
