import { describe, expect, test } from "bun:test";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { cniVersionOf, composeCall } from "./call.ts";
import { CNI_VERSIONS, type CniVersion, isAtLeast } from "./version.ts";

describe("cniVersionOf()", () => {
  const firstVersion = { ADD: "0.1.0", DEL: "0.1.0", CHECK: "0.4.0", GC: "1.1.0", STATUS: "1.1.0" } as const;
  const rows = Object.entries(firstVersion).flatMap(([command, first]) =>
    CNI_VERSIONS.map((version) => [command as keyof typeof firstVersion, version, isAtLeast(version, first)] as const),
  );

  test.each(rows)("%s at %s is allowed: %p", (command, version, allowed) => {
    const read = () => cniVersionOf({ cniVersion: version }, command, CNI_VERSIONS);

    if (allowed) expect(read()).toBe(version);
    else expect(thrownBy(read).kind).toBe("version-incompatible");
  });

  test.each([
    ["absent, and 0.1.0 is supported", {}, CNI_VERSIONS, "0.1.0"],
    ["empty, and 0.1.0 is supported", { cniVersion: "" }, CNI_VERSIONS, "0.1.0"],
    ["absent, and 0.1.0 is not supported", {}, ["0.3.0", "1.0.0"], undefined],
    ["below what the plugin supports", { cniVersion: "0.2.0" }, ["0.3.0", "1.0.0"], undefined],
    ["above what the plugin supports", { cniVersion: "1.1.0" }, ["0.3.0", "1.0.0"], undefined],
  ] as const)("a version that is %s", (_, config, supported: readonly CniVersion[], expected) => {
    const read = () => cniVersionOf(config, "ADD", supported);

    if (expected !== undefined) expect(read()).toBe(expected);
    else expect(thrownBy(read).message).toContain(supported.join(", "));
  });
});

describe("composeCall()", () => {
  const config = { name: "net", cniVersion: "1.1.0" };
  const input = { config, cniVersion: "1.1.0", stdin: new Uint8Array() } as const;
  const env = { CNI_CONTAINERID: "c1", CNI_NETNS: "/n", CNI_IFNAME: "eth0", CNI_PATH: "/a:/b", CNI_ARGS: "IP=::1" };

  test("returns what the runtime passed as one value", () => {
    expect(composeCall("ADD", env, input)).toEqual({
      command: "ADD",
      cniVersion: "1.1.0",
      networkName: "net",
      config,
      stdin: input.stdin,
      environment: env,
      path: ["/a", "/b"],
      containerId: "c1",
      ifname: "eth0",
      args: "IP=::1",
      netns: "/n",
      prevResult: undefined,
    });
  });

  test("distinguishes a DEL without netns from one with it", () => {
    expect(composeCall("DEL", { ...env, CNI_NETNS: "" }, input)).toMatchObject({ netns: undefined });
    expect(composeCall("DEL", env, input)).toMatchObject({ netns: "/n" });
  });

  test("returns for GC the valid attachments, and no fields of a container", () => {
    const valid = { ...config, "cni.dev/valid-attachments": [{ containerID: "c1", ifname: "eth0" }] };
    const call = composeCall("GC", env, { ...input, config: valid });

    expect(call).toMatchObject({ validAttachments: [{ containerId: "c1", ifname: "eth0" }] });
    expect(call).not.toHaveProperty("containerId");
  });
});
