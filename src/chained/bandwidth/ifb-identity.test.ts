import { describe, expect, test } from "bun:test";
import type { Link } from "../../linux/rtnetlink/link.ts";
import { ifbNamesOf, isIfbOf, isStrayIfb } from "./ifb-identity.ts";

const attachment = { networkName: "net", containerId: "c1", ifname: "eth0" };
const names = ifbNamesOf(attachment);
const [shared, own] = names.candidates;

const ifb = (more: Partial<Link>): Link => ({
  index: 7,
  name: shared,
  kind: "ifb",
  isUp: true,
  mtu: 1500,
  mac: new Uint8Array(6),
  transmitQueues: 1,
  receiveQueues: 1,
  ...more,
});

describe("ifbNamesOf()", () => {
  test("returns upstream's name, which is short enough for the kernel", () => {
    const sha512 = new Bun.CryptoHasher("sha512").update("netc1").digest("hex");

    expect(shared).toBe(`bwp${sha512.slice(0, 12)}`);
    expect(names.candidates.map((name) => name.length)).toEqual([15, 15]);
    expect(names.alias).toBe("net/c1/eth0");
  });

  test("returns different second names for two interfaces of one container", () => {
    const second = ifbNamesOf({ ...attachment, ifname: "eth1" });

    expect(second.candidates[0]).toBe(shared);
    expect(second.candidates[1]).not.toBe(own);
  });

  test("returns aliases that the kernel accepts and that differ for different names", () => {
    const long = (tail: string) =>
      ifbNamesOf({ networkName: "n".repeat(300), containerId: `c${"x".repeat(400)}${tail}`, ifname: "eth0" });

    expect(long("1").alias.length).toBeLessThan(256);
    expect(long("1").alias).not.toBe(long("2").alias);
  });
});

describe("isIfbOf()", () => {
  test.each([
    ["its own, by the alias", ifb({ alias: "net/c1/eth0" }), true],
    ["its own under the second name", ifb({ name: own, alias: "net/c1/eth0" }), true],
    ["upstream's, which has no alias", ifb({}), true],
    ["the other interface's", ifb({ alias: "net/c1/eth1" }), false],
    ["one without alias under the second name", ifb({ name: own }), false],
    ["a link that is not an IFB", ifb({ kind: "dummy", alias: "net/c1/eth0" }), false],
  ])("%s", (_name, link, expected) => {
    expect(isIfbOf(link, names)).toBe(expected);
  });
});

describe("isStrayIfb()", () => {
  const valid = [{ containerId: "c1", ifname: "eth0" }];

  test.each([
    ["one of a valid attachment", ifb({ alias: "net/c1/eth0" }), false],
    ["one of another interface", ifb({ alias: "net/c1/eth1" }), true],
    ["one of another container", ifb({ alias: "net/c2/eth0" }), true],
    ["one of a longer network name", ifb({ alias: "network/c2/eth0" }), false],
    ["one of another network", ifb({ alias: "other/c2/eth0" }), false],
    ["one without alias", ifb({}), false],
    ["an IFB of another program", ifb({ name: "ifb0", alias: "net/c2/eth0" }), false],
  ])("%s", (_name, link, expected) => {
    expect(isStrayIfb(link, "net", valid)).toBe(expected);
  });
});
