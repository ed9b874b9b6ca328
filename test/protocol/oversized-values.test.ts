/** What is too deep or too long in a call, to every plugin and the admin tool: an ordinary error, and a short one. */
import { afterAll, describe, expect, test } from "bun:test";
import { API_VERSION, identity } from "../../src/identity.ts";
import { MINIMAL } from "../support/network-config.ts";
import { ATTACHMENT_ENV, builtProgram, cniErrorOfRun, runPlugin } from "../support/run-plugin.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const PLUGINS = [identity.product, identity.ipamType, "host-local", "portmap", "bandwidth"];
const DEEP = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
const DEEP_OBJECT = `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`;
const LONG = "x".repeat(5_000);
const directory = temporaryDirectory("oversized");
afterAll(() => directory.remove());
const EMBEDDED = { datastore_type: "embedded", datastore_path: `${directory.path}/datastore.db` };
const ENV = { ...ATTACHMENT_ENV, CNI_COMMAND: "ADD" };

/** The minimal config with one more member, whose value is written as it is. */
function configWith(member: string, value: string): string {
  return `${JSON.stringify(MINIMAL).slice(0, -1)},${JSON.stringify(member)}:${value}}`;
}

describe("JSON that is nested 50,000 levels deep", () => {
  for (const plugin of PLUGINS) {
    test.each([
      ["lists", "x", DEEP],
      ["objects", "runtimeConfig", DEEP_OBJECT],
      ["a previous result", "prevResult", DEEP_OBJECT],
    ])(`is refused by ${plugin}: %s`, async (_, member, value) => {
      const error = cniErrorOfRun(
        await runPlugin(builtProgram(plugin), { env: ENV, stdin: configWith(member, value) }),
      );

      expect(error).toMatchObject({ code: 6, msg: expect.stringContaining("nested more than 500 levels deep") });
    });
  }

  const pool = `apiVersion: ${API_VERSION}\nkind: IPPool\nmetadata:\n  name: a\nspec: `;
  const laughs = Array.from({ length: 9 }, (_, level) => {
    return `  a${level + 1}: &a${level + 1} [${Array(9).fill(`*a${level}`).join(", ")}]`;
  });

  test.each([
    ["config check", "deep.json", configWith("x", DEEP)],
    ["apply -f", "deep.json", configWith("x", DEEP_OBJECT)],
    ["apply -f", "flow.yaml", `${pool}${DEEP}\n`],
    ["apply -f", "block.yaml", `${pool}\n  ${"- ".repeat(50_000)}1\n`],
    [
      "apply -f",
      "lines.yaml",
      `${pool}\n${Array.from({ length: 2_000 }, (_, at) => `${" ".repeat(at + 2)}a:`).join("\n")}`,
    ],
    ["apply -f", "endless.yaml", `${pool} &again\n  cidr: *again\n`],
    ["apply -f", "aliases.yaml", `${pool}\n  a0: &a0 [1, 2]\n${laughs.join("\n")}\n`],
  ])("is refused by %s %s", async (command, name, text) => {
    await Bun.write(`${directory.path}/${name}`, text);
    const args = [...command.split(" "), `${directory.path}/${name}`];
    const run = await runPlugin(builtProgram(identity.adminTool), { args });

    expect(run.exitCode).toBe(1);
    expect(run.stdout + run.stderr).toMatch(/nested more than 500 levels deep|excessive aliasing/);
  });
});

describe("a value of 5,000 characters", () => {
  const values = (value: unknown) => [
    { name: value },
    { cniVersion: value },
    { type: value },
    { mtu: value },
    { [String(value)]: 1, mtu: "x" },
    { ipam: value },
    { ipam: { type: value } },
    { ipam: { type: identity.ipamType, ipv4_pools: value } },
    { ipam: { type: identity.ipamType, ipv4_pools: [value] } },
    { ipam: { type: "host-local", ranges: value } },
    { ipam: { type: "host-local", ranges: [[{ subnet: value }]] } },
    { ipam: { type: "host-local", ranges: [[{ subnet: "10.0.0.0/24" }]], dataDir: value } },
    { datastore_type: value },
    { datastore_type: "embedded", datastore_path: value },
    { etcd_endpoints: value },
    { log_level: value },
    { log_file_path: value },
    { nodename: value },
    { nodename_file: value },
    { snat: value },
    { backend: value },
    { markMasqBit: value },
    { conditionsV4: value },
    { ingressRate: value },
    { shapedSubnets: value },
    { runtimeConfig: value },
    { runtimeConfig: { portMappings: [{ hostPort: value, containerPort: 1, protocol: value, hostIP: value }] } },
    { runtimeConfig: { bandwidth: value } },
    { runtimeConfig: { ips: value } },
    { prevResult: value },
    { prevResult: { cniVersion: "1.0.0", ips: [{ address: value }] } },
    { prevResult: { cniVersion: value } },
  ];
  const environments = ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS", "CNI_COMMAND", "CNI_PATH"].flatMap(
    (name) => [{ [name]: LONG }, { [name]: `/${LONG}` }, { [name]: `IP=${LONG}` }],
  );
  const calls = [
    ...values(LONG).map((more) => ({ env: {}, more })),
    ...values([[LONG]]).map((more) => ({ env: {}, more })),
    ...environments.map((env) => ({ env, more: {} })),
  ];

  for (const plugin of PLUGINS) {
    test(`is quoted by ${plugin} with 200 characters at most`, async () => {
      const texts = await Promise.all(
        calls.map(async ({ env, more }) => {
          const { stdout, stderr } = await runPlugin(builtProgram(plugin), {
            env: { ...ENV, ...env },
            stdin: { ...MINIMAL, ...EMBEDDED, ...more },
          });
          return stdout + stderr;
        }),
      );

      expect(texts.filter((text) => text.includes("x".repeat(201)))).toEqual([]);
    });
  }

  test.each([
    [["get", LONG]],
    [["get", "pools", LONG]],
    [["get", "pools", "-o", LONG]],
    [["get", "pools", "-l", `${LONG}(`]],
    [[LONG]],
    [[`--${LONG}`]],
    [["apply", "-f", LONG]],
    [["ipam", "show", "--ip", LONG]],
    [["ipam", "release", "--ip", LONG]],
    [["datastore", "check", "--config", LONG]],
  ])("is quoted by the admin tool with 200 characters at most: %#", async (args) => {
    const { stdout, stderr } = await runPlugin(builtProgram(identity.adminTool), { args });

    expect(stdout + stderr).not.toBe("");
    expect(stdout + stderr).not.toContain("x".repeat(201));
  });
});
