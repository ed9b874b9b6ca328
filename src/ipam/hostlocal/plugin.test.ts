import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { rejectionOf } from "../../../test/support/thrown-by.ts";
import type { Attachment } from "../../cni/attachments.ts";
import type { CniResult } from "../../cni/result.ts";
import { type AddInput, hostLocalAdd, hostLocalCheck } from "./add.ts";
import { hostLocalDel, hostLocalGc } from "./release.ts";
import { hostLocalStatus } from "./status.ts";

const folder = temporaryDirectory("hostlocal-unit");
afterAll(() => folder.remove());

const never = new AbortController().signal;
let networks = 0;

type More = Partial<Pick<AddInput, "args" | "whenHeld">> & { readonly prevResult?: CniResult };

/** A separate network for each test, in a separate folder. */
function network(ipam: object, config: object = {}) {
  networks += 1;
  const networkName = `net${networks}`;
  const directory = join(folder.path, networkName);
  const call = {
    config: { name: networkName, ipam: { type: "host-local", dataDir: folder.path, ...ipam }, ...config },
    networkName,
    cniVersion: "1.0.0",
  } as const;
  const attachment = (containerId: string, ifname: string, more: More) => ({
    ...call,
    containerId,
    ifname,
    args: "",
    ...more,
  });
  const add = async (containerId: string, ifname = "eth0", more: More = {}) =>
    (await hostLocalAdd(attachment(containerId, ifname, more), never)).ips.map(({ address }) => address);
  return {
    directory,
    add,
    result: (containerId: string) => hostLocalAdd(attachment(containerId, "eth0", {}), never),
    del: (containerId: string, ifname = "eth0") => hostLocalDel(attachment(containerId, ifname, {}), never),
    check: (containerId: string, prevResult?: CniResult) =>
      hostLocalCheck({ ...attachment(containerId, "eth0", {}), prevResult }, never),
    gc: (validAttachments: readonly Attachment[] | undefined) => hostLocalGc({ ...call, validAttachments }, never),
    status: () => hostLocalStatus(call),
    /** Reservations and last reserved addresses: all the files that upstream's plugin has too. */
    files: () =>
      Object.fromEntries(
        readdirSync(directory)
          .toSorted()
          .filter((name) => name !== "lock" && name !== ".index")
          .map((name) => [name, readFileSync(join(directory, name), "utf8")]),
      ),
  };
}

const SMALL = { subnet: "10.1.2.0/29" };
const TWO = { ranges: [[{ subnet: "10.1.2.0/24" }, { subnet: "10.2.2.0/24" }], [{ subnet: "2001:db8:1::0/64" }]] };

describe("hostLocalAdd()", () => {
  test("assigns one address from each set, with gateway, routes and DNS, and records the owner", async () => {
    const resolvConf = join(folder.path, "resolv.conf");
    writeFileSync(resolvConf, "nameserver 192.0.2.3");
    const net = network({ ...TWO, resolvConf, routes: [{ dst: "192.168.0.0/16", gw: "1.1.1.1" }] });

    const result = await net.result("dummy");

    expect(result).toMatchObject({
      interfaces: [],
      ips: [
        { address: "10.1.2.2/24", gateway: "10.1.2.1" },
        { address: "2001:db8:1::2/64", gateway: "2001:db8:1::1" },
      ],
      routes: [{ destination: "192.168.0.0/16", gateway: "1.1.1.1" }],
      dns: { nameservers: ["192.0.2.3"] },
    });
    expect(net.files()).toEqual({
      "10.1.2.2": "dummy\r\neth0",
      "2001:db8:1::2": "dummy\r\neth0",
      "last_reserved_ip.0": "10.1.2.2",
      "last_reserved_ip.1": "2001:db8:1::2",
    });
  });

  test("assigns every address once, never the broadcast, then fails; a released address is reused last", async () => {
    const net = network(SMALL);
    const given: string[] = [];
    for (const id of ["a", "b", "c", "d", "e"]) given.push(...(await net.add(id)));
    expect(given).toEqual(["10.1.2.2/29", "10.1.2.3/29", "10.1.2.4/29", "10.1.2.5/29", "10.1.2.6/29"]);
    expect((await rejectionOf(() => net.add("f"))).kind).toBe("addresses-exhausted");
    await net.del("c");
    expect(await net.add("f")).toEqual(["10.1.2.4/29"]);
  });

  test("continues after the address assigned last, even if that is free again", async () => {
    const net = network(SMALL);
    await net.add("a");
    await net.del("a");
    expect(await net.add("a")).toEqual(["10.1.2.3/29"]);
  });

  test.each([
    ["none reserved", {}, "", "10.0.0.2"],
    ["some reserved", { "10.0.0.2": "id" }, "", "10.0.0.3"],
    ["after the last", {}, "10.0.0.5", "10.0.0.6"],
    ["after the last, some reserved", { "10.0.0.4": "id", "10.0.0.5": "id" }, "10.0.0.3", "10.0.0.6"],
    ["around the end", { "10.0.0.6": "id" }, "10.0.0.5", "10.0.0.2"],
    ["the last one outside the range", { "10.0.0.2": "id" }, "10.0.0.128", "10.0.0.3"],
    ["the last one not an address", {}, "nonsense", "10.0.0.2"],
    [
      "all but the last reserved",
      { "10.0.0.2": "x", "10.0.0.4": "x", "10.0.0.5": "x", "10.0.0.6": "x" },
      "10.0.0.3",
      "10.0.0.3",
    ],
  ])("assigns the next free address if another program wrote the files (%s)", async (_, files, last, expected) => {
    const net = network({ subnet: "10.0.0.0/29" });
    mkdirSync(net.directory);
    for (const [name, content] of Object.entries(files)) writeFileSync(join(net.directory, name), content);
    if (last !== "") writeFileSync(join(net.directory, "last_reserved_ip.0"), last);
    expect(await net.add("new")).toEqual([`${expected}/29`]);
  });

  test("assigns different addresses to two interfaces of one container", async () => {
    const net = network(SMALL);
    expect([await net.add("a", "eth0"), await net.add("a", "eth1")]).toEqual([["10.1.2.2/29"], ["10.1.2.3/29"]]);
    await net.del("a", "eth0");
    expect(net.files()).toMatchObject({ "10.1.2.3": "a\r\neth1" });
  });

  test("refuses a second ADD of the same attachment and changes nothing", async () => {
    const net = network(SMALL);
    await net.add("a");
    const before = net.files();
    expect((await rejectionOf(() => net.add("a"))).kind).toBe("address-taken");
    expect(net.files()).toEqual(before);
  });

  test("returns the same addresses again if the caller asks for that", async () => {
    const net = network(TWO);
    const first = await net.add("a");
    expect(await net.add("a", "eth0", { whenHeld: "same addresses" })).toEqual(first);
    expect(await net.add("a", "eth0", { whenHeld: "same addresses", args: "IP=10.1.2.2" })).toEqual(first);
    expect(Object.keys(net.files())).toHaveLength(4);
  });

  describe("with a requested address", () => {
    const asking = (...ips: string[]) => ({ args: { cni: { ips } } });

    test("assigns it, from CNI_ARGS or the config, in several ranges and families", async () => {
      expect(await network(SMALL).add("a", "eth0", { args: "IP=10.1.2.5" })).toEqual(["10.1.2.5/29"]);
      expect(await network(TWO, asking("2001:db8:1::999", "10.2.2.88")).add("a")).toEqual([
        "10.2.2.88/24",
        "2001:db8:1::999/64",
      ]);
    });

    test.each([
      ["is reserved already", "10.1.2.2", "address-taken"],
      ["is the gateway", "10.1.2.1", "address-taken"],
      ["is before the start", "10.1.2.0", "address-outside-pools"],
      ["is after the end", "10.1.2.7", "address-outside-pools"],
      ["is outside the subnet", "10.9.9.9", "address-outside-pools"],
    ])("refuses one that %s", async (_, ip, kind) => {
      const net = network(SMALL);
      await net.add("other");
      const before = net.files();
      expect((await rejectionOf(() => net.add("a", "eth0", { args: `IP=${ip}` }))).kind).toBe(kind as "internal");
      expect(net.files()).toEqual(before);
    });

    test("refuses two addresses of one set, and reserves neither", async () => {
      const ranges = [[{ subnet: "10.1.2.0/24" }], [{ subnet: "10.1.3.0/24" }]];
      const net = network({ ranges }, asking("10.1.2.88", "10.1.2.77"));
      expect((await rejectionOf(() => net.add("a"))).kind).toBe("address-outside-pools");
      expect(net.files()).toEqual({});
    });

    test("releases the first set's address if the second has none free", async () => {
      const net = network({ ranges: [[{ subnet: "10.1.2.0/24" }], [{ subnet: "10.1.3.0/30" }]] });
      await net.add("a");
      expect((await rejectionOf(() => net.add("b"))).kind).toBe("addresses-exhausted");
      expect(Object.keys(net.files()).filter((name) => !name.startsWith("last"))).toEqual(["10.1.2.2", "10.1.3.2"]);
    });
  });

  test("removes an empty reservation of a killed process, and assigns its address again", async () => {
    const net = network({ subnet: "10.1.2.0/29" });
    mkdirSync(net.directory);
    writeFileSync(join(net.directory, "10.1.2.2"), "");
    const given: string[] = [];
    for (const id of ["a", "b", "c", "d", "e"]) given.push(...(await net.add(id)));
    expect(given[0]).toBe("10.1.2.2/29");
    expect((await rejectionOf(() => net.add("f"))).kind).toBe("addresses-exhausted");
    const other = network(SMALL);
    mkdirSync(other.directory);
    writeFileSync(join(other.directory, "10.1.2.4"), "");
    expect(await other.add("a", "eth0", { args: "IP=10.1.2.4" })).toEqual(["10.1.2.4/29"]);
    writeFileSync(join(other.directory, "10.1.2.5"), "");
    await other.del("nobody");
    expect(existsSync(join(other.directory, "10.1.2.5"))).toBe(false);
  });

  test("names the missing file of resolvConf", async () => {
    const net = network({ ...SMALL, resolvConf: "/nonexistent/resolv.conf" });
    expect((await rejectionOf(() => net.add("a"))).kind).toBe("io-failure");
    expect(existsSync(net.directory)).toBe(false);
  });
});

describe("hostLocalDel()", () => {
  test("succeeds without a reservation, and does not create the folder", async () => {
    const net = network(SMALL);
    await net.del("unknown");
    expect(existsSync(net.directory)).toBe(false);
    await net.add("a");
    await net.del("unknown");
    expect(net.files()).toMatchObject({ "10.1.2.2": "a\r\neth0" });
  });

  test.each([
    ["without interface, as old versions wrote them", "old"],
    ["with white space around", "  old\r\neth0 \n"],
  ])("removes files %s", async (_, content) => {
    const net = network(SMALL);
    await net.add("other");
    writeFileSync(join(net.directory, "10.1.2.5"), content);
    await net.del("old");
    expect(Object.keys(net.files())).toEqual(["10.1.2.2", "last_reserved_ip.0"]);
  });

  test("keeps an old file as long as the interface has a file of its own", async () => {
    const net = network(SMALL);
    await net.add("a");
    writeFileSync(join(net.directory, "10.1.2.5"), "a");
    await net.del("a");
    expect(Object.keys(net.files())).toEqual(["10.1.2.5", "last_reserved_ip.0"]);
    await net.del("a");
    expect(Object.keys(net.files())).toEqual(["last_reserved_ip.0"]);
  });

  test("releases addresses also with a config whose ranges are invalid", async () => {
    const net = network(SMALL);
    await net.add("a");
    const config = { ipam: { dataDir: folder.path, subnet: "nonsense" } };
    const networkName = net.directory.slice(net.directory.lastIndexOf("/") + 1);
    await hostLocalDel({ config, networkName, containerId: "a", ifname: "eth0" }, never);
    expect(Object.keys(net.files())).toEqual(["last_reserved_ip.0"]);
  });
});

describe("hostLocalCheck()", () => {
  test("succeeds while the attachment has its addresses", async () => {
    const net = network(TWO);
    await net.check("a", await net.result("a"));
  });

  test("fails if there is no reservation, and names the missing address", async () => {
    const net = network(TWO);
    expect((await rejectionOf(() => net.check("a"))).kind).toBe("check-failed");
    const result = await net.result("a");
    writeFileSync(join(net.directory, "10.1.2.2"), "thief\r\neth0");
    expect((await rejectionOf(() => net.check("a", result))).message).toContain("10.1.2.2");
  });
});

describe("hostLocalGc()", () => {
  test("removes the reservations of invalid attachments, old and empty files included", async () => {
    const net = network({ subnet: "10.1.2.0/24" });
    for (const id of ["a", "b", "c"]) await net.add(id);
    await net.add("a", "eth1");
    const written = { "10.1.2.20": "a", "10.1.2.21": "gone", "10.1.2.22": "", "not-an-address": "kept" };
    for (const [name, content] of Object.entries(written)) writeFileSync(join(net.directory, name), content);

    await net.gc([
      { containerId: "a", ifname: "eth0" },
      { containerId: "c", ifname: "eth0" },
    ]);

    expect(net.files()).toEqual({
      "10.1.2.2": "a\r\neth0",
      "10.1.2.4": "c\r\neth0",
      "10.1.2.20": "a",
      "last_reserved_ip.0": "10.1.2.5",
      "not-an-address": "kept",
    });
  });

  test("removes nothing without a list, and everything with an empty one", async () => {
    const net = network(SMALL);
    await net.gc([]);
    await net.add("a");
    await net.gc(undefined);
    expect(Object.keys(net.files())).toEqual(["10.1.2.2", "last_reserved_ip.0"]);
    await net.gc([]);
    expect(Object.keys(net.files())).toEqual(["last_reserved_ip.0"]);
  });
});

describe("hostLocalStatus()", () => {
  test("succeeds before the first ADD, and if no address is free", async () => {
    const net = network({ subnet: "10.1.2.0/30" });
    await net.status();
    await net.add("a");
    await net.status();
  });

  test.each([
    ["a data folder below a file", { ...SMALL, dataDir: "/proc/version" }, "not-available"],
    ["a resolvConf that does not exist", { ...SMALL, resolvConf: "/proc/nonexistent" }, "not-available"],
    ["invalid ranges", { subnet: "10.1.2.3/29" }, "config-invalid"],
  ])("reports %s", async (_, ipam, kind) => {
    expect((await rejectionOf(() => network(ipam).status())).kind).toBe(kind as "internal");
  });
});
