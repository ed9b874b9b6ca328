/**
 * The conformance checklist of the protocol, one execution for each item: refused
 * calls go to the built product, accepted ones to a plugin whose handlers always
 * succeed.
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import fc from "fast-check";
import { ATTACHMENT_ENV, builtProgram, cniErrorOfRun, runPlugin } from "../support/run-plugin.ts";

const SPY = [process.execPath, join(import.meta.dir, "spy.process.ts")];
const CONFIG = { cniVersion: "1.1.0", name: "net", type: "spy" };
const VERSIONS = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];

type Env = Readonly<Record<string, string | undefined>>;

function call(command: string, env: Env = {}, stdin: unknown = CONFIG) {
  return { env: { ...ATTACHMENT_ENV, CNI_COMMAND: command, ...env }, stdin };
}

describe("without a command", () => {
  test.each([[{}], [{ CNI_COMMAND: "" }]])("%p: prints a description on stderr, and succeeds", async (env) => {
    const run = await runPlugin(builtProgram(), { env });

    expect(run).toMatchObject({ exitCode: 0, stdout: "" });
    expect(run.stderr).toContain("CNI plugin");
    for (const version of VERSIONS) expect(run.stderr).toContain(version);
  });
});

describe("VERSION", () => {
  test.each([
    ["empty stdin", {}, ""],
    [
      "the runtime's dummy values",
      { CNI_NETNS: "dummy", CNI_IFNAME: "dummy", CNI_PATH: "dummy" },
      { cniVersion: "1.0.0" },
    ],
    ["garbage on stdin", {}, "{"],
  ])("prints the versions with %s", async (_, env, stdin) => {
    const run = await runPlugin(builtProgram(), { env: { CNI_COMMAND: "VERSION", ...env }, stdin });

    expect(run.exitCode).toBe(0);
    expect(JSON.parse(run.stdout)).toEqual({ cniVersion: VERSIONS.at(-1), supportedVersions: VERSIONS });
  });

  test("prints the versions while stdin stays open and silent", async () => {
    const child = Bun.spawn([builtProgram()], { env: { CNI_COMMAND: "VERSION" }, stdin: "pipe", stdout: "pipe" });
    const late = Bun.sleep(20_000).then(() => "late");

    expect(await Promise.race([child.exited, late])).toBe(0);
    child.stdin.end();
  });
});

interface Refusal {
  readonly command: string;
  readonly env?: Env;
  readonly stdin?: unknown;
  readonly code: number;
  readonly names?: readonly string[];
}

const ALL = ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"];
const NOTHING = Object.fromEntries(ALL.map((name) => [name, undefined]));

const REFUSALS: Readonly<Record<string, Refusal>> = {
  "an unknown command": { command: "FOO", code: 4, names: ["FOO"] },
  "a command in lower case": { command: "add", code: 4, names: ["add"] },
  "ADD without any variable": { command: "ADD", env: NOTHING, code: 4, names: ALL },
  "ADD without container ID": {
    command: "ADD",
    env: { CNI_CONTAINERID: undefined },
    code: 4,
    names: ["CNI_CONTAINERID"],
  },
  "ADD with an empty container ID": {
    command: "ADD",
    env: { CNI_CONTAINERID: "" },
    code: 4,
    names: ["CNI_CONTAINERID"],
  },
  "ADD without netns": { command: "ADD", env: { CNI_NETNS: undefined }, code: 4, names: ["CNI_NETNS"] },
  "ADD without interface name": { command: "ADD", env: { CNI_IFNAME: undefined }, code: 4, names: ["CNI_IFNAME"] },
  "ADD without path": { command: "ADD", env: { CNI_PATH: undefined }, code: 4, names: ["CNI_PATH"] },
  "CHECK without any variable": { command: "CHECK", env: NOTHING, code: 4, names: ALL },
  "CHECK without netns": { command: "CHECK", env: { CNI_NETNS: undefined }, code: 4, names: ["CNI_NETNS"] },
  "DEL without container ID": {
    command: "DEL",
    env: { CNI_CONTAINERID: undefined },
    code: 4,
    names: ["CNI_CONTAINERID"],
  },
  "DEL without interface name": { command: "DEL", env: { CNI_IFNAME: undefined }, code: 4, names: ["CNI_IFNAME"] },
  "DEL without path": { command: "DEL", env: { CNI_PATH: undefined }, code: 4, names: ["CNI_PATH"] },
  "GC without path": { command: "GC", env: NOTHING, code: 4, names: ["CNI_PATH"] },
  "STATUS without path": { command: "STATUS", env: NOTHING, code: 4, names: ["CNI_PATH"] },
  "missing variables before bad stdin": { command: "ADD", env: NOTHING, stdin: "{", code: 4 },
  "a malformed ID before a missing netns": {
    command: "ADD",
    env: { CNI_CONTAINERID: "-a", CNI_NETNS: "" },
    code: 4,
    names: ["-a"],
  },
  ...Object.fromEntries(
    ["-a", "a/b", "a b", "_a", "ä"].map((id) => [
      `container ID ${JSON.stringify(id)}`,
      { command: "ADD", env: { CNI_CONTAINERID: id }, code: 4, names: ["CNI_CONTAINERID"] },
    ]),
  ),
  ...Object.fromEntries(
    ["sixteen-letters-", ".", "..", "a/b", "a:b", "a b", "a\tb", "a\u00a0b", "a\u2003b"].map((name) => [
      `interface name ${JSON.stringify(name)}`,
      { command: "ADD", env: { CNI_IFNAME: name }, code: 4, names: ["CNI_IFNAME"] },
    ]),
  ),
  "a zero byte on stdin": { command: "ADD", stdin: Buffer.from('{"name":"a\0"}'), code: 6 },
  "bytes that are not UTF-8": { command: "ADD", stdin: Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]), code: 6 },
  "empty stdin": { command: "ADD", stdin: "", code: 6 },
  "broken JSON": { command: "ADD", stdin: "{not json", code: 6 },
  "a JSON array": { command: "ADD", stdin: "[]", code: 6 },
  "JSON null": { command: "ADD", stdin: "null", code: 6 },
  "two JSON objects": { command: "ADD", stdin: "{}{}", code: 6 },
  "no name": { command: "ADD", stdin: { cniVersion: "1.0.0" }, code: 7, names: ["name"] },
  "an empty name": { command: "ADD", stdin: { ...CONFIG, name: "" }, code: 7 },
  "a null name": { command: "ADD", stdin: { ...CONFIG, name: null }, code: 7 },
  "name _x": { command: "ADD", stdin: { ...CONFIG, name: "_x" }, code: 7, names: ["_x"] },
  "name a/b": { command: "ADD", stdin: { ...CONFIG, name: "a/b" }, code: 7, names: ["a/b"] },
  "a name that is a number": { command: "ADD", stdin: { ...CONFIG, name: 1 }, code: 6 },
  "a bad name before a bad version": { command: "ADD", stdin: { cniVersion: "9.9.9", name: "_x" }, code: 7 },
  "a version that is a number": { command: "ADD", stdin: { ...CONFIG, cniVersion: 1 }, code: 6 },
  "version 9.9.9": {
    command: "ADD",
    stdin: { ...CONFIG, cniVersion: "9.9.9" },
    code: 1,
    names: ["9.9.9", ...VERSIONS],
  },
  "version 0.4": { command: "ADD", stdin: { ...CONFIG, cniVersion: "0.4" }, code: 1, names: ["0.4"] },
  "CHECK at 0.3.1": { command: "CHECK", stdin: { ...CONFIG, cniVersion: "0.3.1" }, code: 1, names: ["CHECK"] },
  "CHECK without version": { command: "CHECK", stdin: { name: "net" }, code: 1 },
  "GC at 1.0.0": { command: "GC", stdin: { ...CONFIG, cniVersion: "1.0.0" }, code: 1, names: ["GC"] },
  "STATUS at 1.0.0": { command: "STATUS", stdin: { ...CONFIG, cniVersion: "1.0.0" }, code: 1, names: ["STATUS"] },
  "ADD in the plugin's own netns": { command: "ADD", env: { CNI_NETNS: "/proc/self/ns/net" }, code: 8 },
  "DEL in the plugin's own netns": { command: "DEL", env: { CNI_NETNS: "/proc/self/ns/net" }, code: 8 },
  "prevResult of another shape": { command: "ADD", stdin: { ...CONFIG, prevResult: { cniVersion: "0.4.0" } }, code: 7 },
  "a malformed prevResult": { command: "ADD", stdin: { ...CONFIG, prevResult: { ips: 1 } }, code: 6 },
  "a prevResult that is a string": { command: "DEL", stdin: { ...CONFIG, prevResult: "x" }, code: 6 },
  "malformed valid attachments": { command: "GC", stdin: { ...CONFIG, "cni.dev/valid-attachments": 1 }, code: 6 },
};

describe("the product refuses", () => {
  test.each(Object.entries(REFUSALS))("%s", async (_, refusal) => {
    const run = await runPlugin(builtProgram(), call(refusal.command, refusal.env, refusal.stdin));
    const error = cniErrorOfRun(run);

    expect(error.code).toBe(refusal.code);
    expect(VERSIONS).toContain(error.cniVersion);
    for (const name of refusal.names ?? []) expect(`${error.msg} ${error.details ?? ""}`).toContain(name);
  });
});

const ACCEPTED: Readonly<Record<string, ReturnType<typeof call>>> = {
  "DEL without netns": call("DEL", { CNI_NETNS: undefined }),
  "DEL without version": call("DEL", {}, { name: "net" }),
  "GC with only a path": call("GC", { ...NOTHING, CNI_PATH: "/x" }),
  "GC with a malformed container ID, which it does not require": call("GC", { CNI_CONTAINERID: "-" }),
  "STATUS with only a path": call("STATUS", { ...NOTHING, CNI_PATH: "/x" }),
  "CHECK at 0.4.0": call("CHECK", {}, { ...CONFIG, cniVersion: "0.4.0" }),
  "container ID a_b.c-d": call("DEL", { CNI_CONTAINERID: "a_b.c-d" }),
  "a container ID of 300 letters": call("DEL", { CNI_CONTAINERID: "a".repeat(300) }),
  "an interface name of 15 letters": call("DEL", { CNI_IFNAME: "fifteen-letters" }),
  "unknown keys": call("DEL", {}, { ...CONFIG, foo: { bar: [1] } }),
  "args and capabilities of any content": call("DEL", {}, { ...CONFIG, args: { cni: 1 }, capabilities: { x: 1 } }),
  "its own netns with the override": call("DEL", { CNI_NETNS: "/proc/self/ns/net", CNI_NETNS_OVERRIDE: "True" }),
  "a netns path that cannot be opened": call("DEL", { CNI_NETNS: "/proc/1/nowhere/x" }),
  "malformed CNI_ARGS that the plugin does not use": call("DEL", { CNI_ARGS: "nonsense" }),
};

describe("the protocol accepts", () => {
  test.each(Object.entries(ACCEPTED))("%s", async (_, accepted) => {
    expect(await runPlugin(SPY, accepted)).toEqual({ exitCode: 0, stdout: "", stderr: "" });
  });
});

describe("ADD", () => {
  test.each(VERSIONS)("returns results in the shape of %s", async (cniVersion) => {
    const run = await runPlugin(SPY, call("ADD", {}, { ...CONFIG, cniVersion }));
    const result = JSON.parse(run.stdout);

    expect(run.exitCode).toBe(0);
    expect(result.cniVersion).toBe(cniVersion);
    if (cniVersion < "0.3.0") {
      expect(result).toMatchObject({ ip4: { ip: "10.0.0.2/32" }, ip6: { ip: "fd00::2/128" } });
      expect(result).not.toHaveProperty("ips");
      return;
    }
    const versions = cniVersion < "1.0.0" ? ["4", "6"] : [undefined, undefined];
    expect(result.ips.map((ip: { version?: string }) => ip.version)).toEqual(versions);
    expect(result.interfaces[1].mtu).toBe(cniVersion === "1.1.0" ? 1400 : undefined);
  });

  test("treats a config without version as 0.1.0", async () => {
    const run = await runPlugin(SPY, call("ADD", {}, { name: "net" }));

    expect(JSON.parse(run.stdout)).toMatchObject({ cniVersion: "0.1.0", ip4: { ip: "10.0.0.2/32" } });
  });

  test.each(["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"])("passes prevResult through at %s", async (cniVersion) => {
    const version = cniVersion < "1.0.0" ? { version: "4" } : {};
    const prevResult = {
      cniVersion,
      interfaces: [{ name: "eth0", mac: "aa:bb:cc:dd:ee:ff", sandbox: "/x" }],
      ips: [{ ...version, address: "10.1.0.5/16", gateway: "10.1.0.1", interface: 0 }],
      routes: [{ dst: "0.0.0.0/0", gw: "10.1.0.1" }],
      dns: { nameservers: ["10.1.0.1"] },
    };
    const run = await runPlugin(SPY, call("ADD", { SPY: "pass" }, { ...CONFIG, cniVersion, prevResult }));

    expect(JSON.parse(run.stdout)).toEqual(prevResult);
  });
});

describe("any bytes on stdin", () => {
  test("result in exactly one JSON error", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (stdin) => {
        const error = cniErrorOfRun(await runPlugin(builtProgram(), call("ADD", {}, stdin)));
        expect([6, 7]).toContain(error.code);
      }),
      { numRuns: 50 },
    );
  });
});
