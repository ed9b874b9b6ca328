/** host-local as a runtime uses it: the built executable, in every version of the protocol. */

import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CNI_VERSIONS, isAtLeast } from "../../src/cni/version.ts";
import { callHostLocal, configOf, environmentOf, filesOf, type HostLocalCall, OURS } from "../support/host-local.ts";
import { program, testNeeding } from "../support/needs.ts";
import { cniErrorOfRun, runPlugin } from "../support/run-plugin.ts";
import { NOTHING_UNUSUAL } from "../support/stderr.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const folder = temporaryDirectory("hostlocal");
afterAll(() => folder.remove());

let folders = 0;

function newDataDir(): string {
  folders += 1;
  return join(folder.path, String(folders));
}

type More = Omit<HostLocalCall, "program" | "command" | "dataDir">;

const SUBNET = { subnet: "10.1.2.0/24" };
const BOTH = {
  ranges: [[{ subnet: "10.1.2.0/24" }, { subnet: "10.2.2.0/24" }], [{ subnet: "2001:db8:1::0/64" }]],
  routes: [
    { dst: "0.0.0.0/0" },
    { dst: "::/0" },
    { dst: "192.168.0.0/16", gw: "1.1.1.1" },
    { dst: "2001:db8:2::0/64", gw: "2001:db8:3::1" },
  ],
};

/** The whole result, written out once for each shape of the protocol. */
function expectedResult(cniVersion: (typeof CNI_VERSIONS)[number]): object {
  const dns = { nameservers: ["192.0.2.3"] };
  const routes = [
    { dst: "0.0.0.0/0" },
    { dst: "::/0" },
    { dst: "192.168.0.0/16", gw: "1.1.1.1" },
    { dst: "2001:db8:2::/64", gw: "2001:db8:3::1" },
  ];
  if (!isAtLeast(cniVersion, "0.3.0")) {
    const ip4 = { ip: "10.1.2.2/24", gateway: "10.1.2.1", routes: [routes[0], routes[2]] };
    const ip6 = { ip: "2001:db8:1::2/64", gateway: "2001:db8:1::1", routes: [routes[1], routes[3]] };
    return { cniVersion, ip4, ip6, dns };
  }
  const version = (text: string) => (isAtLeast(cniVersion, "1.0.0") ? {} : { version: text });
  const ips = [
    { ...version("4"), address: "10.1.2.2/24", gateway: "10.1.2.1" },
    { ...version("6"), address: "2001:db8:1::2/64", gateway: "2001:db8:1::1" },
  ];
  return { cniVersion, ips, routes, dns };
}

describe.each([...CNI_VERSIONS])("host-local in %s", (cniVersion) => {
  const resolvConf = join(folder.path, "resolv.conf");
  writeFileSync(resolvConf, "nameserver 192.0.2.3");
  const on = (dataDir: string) => (command: HostLocalCall["command"], more: More) =>
    callHostLocal({ program: OURS, command, dataDir, cniVersion, ...more });

  test("assigns addresses of both families with routes and DNS, and releases them", async () => {
    const dataDir = newDataDir();
    const call = on(dataDir);
    const ipam = { ...BOTH, resolvConf };

    const added = await call("ADD", { ipam });
    expect(added).toMatchObject({ exitCode: 0, stderr: NOTHING_UNUSUAL });
    expect(JSON.parse(added.stdout)).toEqual(expectedResult(cniVersion));
    expect(filesOf(dataDir)).toEqual({
      "10.1.2.2": "c1\r\neth0",
      "2001:db8:1::2": "c1\r\neth0",
      "last_reserved_ip.0": "10.1.2.2",
      "last_reserved_ip.1": "2001:db8:1::2",
    });
    const checked = await call("CHECK", { ipam, config: { prevResult: JSON.parse(added.stdout) } });
    if (isAtLeast(cniVersion, "0.4.0")) expect(checked).toEqual({ exitCode: 0, stdout: "", stderr: "" });
    else expect(cniErrorOfRun(checked).code).toBe(1);

    expect(await call("DEL", { ipam })).toEqual({ exitCode: 0, stdout: "", stderr: NOTHING_UNUSUAL });
    expect(Object.keys(filesOf(dataDir))).toEqual(["last_reserved_ip.0", "last_reserved_ip.1"]);
    if (isAtLeast(cniVersion, "0.4.0")) expect(cniErrorOfRun(await call("CHECK", { ipam })).code).toBe(109);
  });

  test("assigns different addresses to two interfaces of a container, and refuses a second ADD of one", async () => {
    const dataDir = newDataDir();
    const call = on(dataDir);
    expect((await call("ADD", { ipam: SUBNET })).exitCode).toBe(0);
    expect((await call("ADD", { ipam: SUBNET, ifname: "eth1" })).exitCode).toBe(0);
    expect(cniErrorOfRun(await call("ADD", { ipam: SUBNET })).code).toBe(104);
    expect((await call("DEL", { ipam: SUBNET })).exitCode).toBe(0);
    expect(filesOf(dataDir)).toEqual({ "10.1.2.3": "c1\r\neth1", "last_reserved_ip.0": "10.1.2.3" });
  });

  test("removes an old file, and succeeds for an unknown container", async () => {
    const dataDir = newDataDir();
    mkdirSync(join(dataDir, "mynet"), { recursive: true });
    writeFileSync(join(dataDir, "mynet", "10.1.2.9"), " c1\n");
    expect((await on(dataDir)("DEL", { ipam: SUBNET, containerId: "unknown" })).exitCode).toBe(0);
    expect(Object.keys(filesOf(dataDir))).toEqual(["10.1.2.9"]);
    expect((await on(dataDir)("DEL", { ipam: SUBNET })).exitCode).toBe(0);
    expect(filesOf(dataDir)).toEqual({});
  });

  test("assigns the requested addresses, all or none", async () => {
    const two = { ranges: [[{ subnet: "10.1.2.0/24" }], [{ subnet: "2001:db8:1::/48" }]] };
    const asking = (...ips: string[]) => ({ args: { cni: { ips } } });
    const dataDir = newDataDir();
    const call = on(dataDir);
    expect((await call("ADD", { ipam: SUBNET, containerId: "a", args: "IP=10.1.2.88" })).stdout).toContain(
      "10.1.2.88/24",
    );
    const both = await call("ADD", { ipam: two, containerId: "b", config: asking("10.1.2.89", "2001:db8:1::999") });
    expect(both.exitCode).toBe(0);
    expect(filesOf(dataDir)).toMatchObject({ "10.1.2.88": "a\r\neth0", "10.1.2.89": "b\r\neth0" });
    expect(filesOf(dataDir)).toMatchObject({ "2001:db8:1::999": "b\r\neth0" });
    const before = filesOf(dataDir);
    const neither = await call("ADD", { ipam: two, containerId: "c", config: asking("10.1.2.90", "10.1.2.91") });
    expect(cniErrorOfRun(neither).code).toBe(105);
    expect(filesOf(dataDir)).toEqual(before);
  });

  test("assigns several addresses of one family from 0.3.0 on", async () => {
    const ranges = [[{ subnet: "10.1.2.0/24" }], [{ subnet: "10.1.3.0/24" }]];
    const run = await on(newDataDir())("ADD", { ipam: { ranges } });
    if (isAtLeast(cniVersion, "0.3.0")) expect(JSON.parse(run.stdout).ips).toHaveLength(2);
    else expect(cniErrorOfRun(run).code).toBe(7);
  });
});

describe("host-local", () => {
  const newest = { program: OURS, cniVersion: "1.1.0", ipam: SUBNET };

  test("lists every version at VERSION", async () => {
    const run = await runPlugin(OURS, { env: { CNI_COMMAND: "VERSION" } });
    expect(JSON.parse(run.stdout).supportedVersions).toEqual([...CNI_VERSIONS]);
  });

  test("releases at GC what is not in the list, and nothing without a list", async () => {
    const dataDir = newDataDir();
    for (const containerId of ["a", "b"]) await callHostLocal({ ...newest, command: "ADD", dataDir, containerId });
    const valid = { "cni.dev/valid-attachments": [{ containerID: "b", ifname: "eth0" }] };
    expect((await callHostLocal({ ...newest, command: "GC", dataDir })).exitCode).toBe(0);
    expect(Object.keys(filesOf(dataDir))).toHaveLength(3);
    expect((await callHostLocal({ ...newest, command: "GC", dataDir, config: valid })).exitCode).toBe(0);
    expect(Object.keys(filesOf(dataDir))).toEqual(["10.1.2.3", "last_reserved_ip.0"]);
  });

  test("does not create a folder at STATUS, and fails with 50 if it cannot write there", async () => {
    const dataDir = newDataDir();
    expect(await callHostLocal({ ...newest, command: "STATUS", dataDir })).toMatchObject({ exitCode: 0, stdout: "" });
    expect(readdirSync(folder.path)).not.toContain(dataDir.slice(dataDir.lastIndexOf("/") + 1));
    const run = await callHostLocal({ ...newest, command: "STATUS", dataDir: "/proc/version" });
    expect(cniErrorOfRun(run).code).toBe(50);
  });

  testNeeding(program("strace"))("opens few files, however many containers there are", async () => {
    const dataDir = newDataDir();
    const network = join(dataDir, "mynet");
    mkdirSync(network, { recursive: true });
    for (let host = 2; host < 250; host += 1) writeFileSync(join(network, `10.1.2.${host}`), `pod${host}\r\neth0`);
    writeFileSync(join(network, "last_reserved_ip.0"), "10.1.2.249");
    // The first call after another program's change reads all files; the next ones do not.
    await callHostLocal({ program: OURS, command: "DEL", dataDir, ipam: SUBNET, containerId: "pod77" });

    const opened = async (command: "ADD" | "DEL", containerId: string) => {
      const trace = join(folder.path, "trace");
      const call = { program: OURS, command, dataDir, ipam: SUBNET, containerId } as const;
      const strace = ["/usr/bin/strace", "-f", "-qq", "-e", "trace=open,openat", "-o", trace, OURS];
      const run = await runPlugin(strace, { env: environmentOf(call), stdin: configOf(call) });
      expect(run.exitCode).toBe(0);
      return (await Bun.file(trace).text()).split("\n").filter((line) => line.includes(network)).length;
    };
    expect(await opened("ADD", "new")).toBeLessThan(20);
    expect(await opened("DEL", "pod200")).toBeLessThan(20);
    expect(Object.keys(filesOf(dataDir))).not.toContain("10.1.2.200");
    rmSync(dataDir, { recursive: true });
  });
});
