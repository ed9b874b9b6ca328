import { describe, expect, test } from "bun:test";
import { thrownBy } from "../../../test/support/thrown-by.ts";
import type { CniVersion } from "../../cni/version.ts";
import { formatAddress } from "../../ip/address.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import { decodeHostLocal, networkDirectory } from "./config.ts";
import { formatSet } from "./range-set.ts";

interface More {
  readonly args?: string;
  readonly cniVersion?: CniVersion;
}

function decode(config: object, { args = "", cniVersion = "1.0.0" }: More = {}) {
  return decodeHostLocal({ config: { ...config }, networkName: "mynet", args, cniVersion });
}

const setsOf = (config: object, more?: More) => decode(config, more).rangeSets.map(formatSet);
const SUBNET = { ipam: { subnet: "10.1.2.0/24" } };

describe("decodeHostLocal()", () => {
  test("fills in ends and gateway of an IPv4 range", () => {
    const [[range] = []] = decode(SUBNET).rangeSets;
    if (range === undefined) throw new Error("expected a range");
    expect([formatPrefix(range.subnet), formatSet([range]), formatAddress(range.gateway)]).toEqual([
      "10.1.2.0/24",
      "10.1.2.1-10.1.2.254",
      "10.1.2.1",
    ]);
  });

  test("fills in ends and gateway of an IPv6 range, which has no broadcast", () => {
    const [[range] = []] = decode({ ipam: { subnet: "2001:db8:1::/64" } }).rangeSets;
    if (range === undefined) throw new Error("expected a range");
    expect([formatSet([range]), formatAddress(range.gateway)]).toEqual([
      "2001:db8:1::1-2001:db8:1:0:ffff:ffff:ffff:ffff",
      "2001:db8:1::1",
    ]);
  });

  test("keeps every field that is set, also in the smallest subnet", () => {
    const range = { subnet: "10.1.2.0/30", rangeStart: "10.1.2.1", rangeEnd: "10.1.2.2", gateway: "10.9.9.9" };
    const [[decoded] = []] = decode({ ipam: range }).rangeSets;
    expect(decoded && [formatSet([decoded]), formatAddress(decoded.gateway)]).toEqual([
      "10.1.2.1-10.1.2.2",
      "10.9.9.9",
    ]);
    expect(setsOf({ ipam: { subnet: "10.1.2.0/30" } })).toEqual(["10.1.2.1-10.1.2.2"]);
  });

  test("orders the runtime's ranges first, then the flat form, then the list", () => {
    const config = {
      runtimeConfig: { ipRanges: [[{ subnet: "11.1.0.0/30" }], [{ subnet: "11.2.0.0/30" }]] },
      ipam: { subnet: "10.1.2.0/30", ranges: [[{ subnet: "10.1.4.0/30" }, { subnet: "10.1.5.0/30" }]] },
    };
    expect(setsOf(config)).toEqual([
      "11.1.0.1-11.1.0.2",
      "11.2.0.1-11.2.0.2",
      "10.1.2.1-10.1.2.2",
      "10.1.4.1-10.1.4.2, 10.1.5.1-10.1.5.2",
    ]);
  });

  test("reads names in any case, and treats null and an empty string as absent", () => {
    const ipam = {
      Subnet: "10.1.2.0/24",
      RANGESTART: "10.1.2.10",
      rangeEnd: null,
      gateway: "",
      ranges: null,
      routes: null,
    };
    expect(setsOf({ IPAM: ipam, runtimeConfig: null, args: { cni: null } })).toEqual(["10.1.2.10-10.1.2.254"]);
  });

  test.each([
    ["CNI_ARGS", {}, "IP=10.1.2.10", ["10.1.2.10"]],
    ["CNI_ARGS with a prefix length", {}, "IP=10.1.2.10/24", ["10.1.2.10"]],
    [
      "the config's args",
      { args: { cni: { ips: ["10.1.2.11", "2001:db8:1::11"] } } },
      "",
      ["10.1.2.11", "2001:db8:1::11"],
    ],
    ["the config's args with prefix lengths", { args: { cni: { ips: ["10.1.2.11/24"] } } }, "", ["10.1.2.11"]],
    ["the runtime", { runtimeConfig: { ips: ["10.1.2.13", "10.1.2.14/24"] } }, "", ["10.1.2.13", "10.1.2.14"]],
    [
      "all three, each address once",
      { args: { cni: { ips: ["10.1.2.11"] } }, runtimeConfig: { ips: ["::ffff:10.1.2.10", "10.1.2.12"] } },
      "IgnoreUnknown=1;Other=x;IP=10.1.2.10",
      ["10.1.2.10", "10.1.2.11", "10.1.2.12"],
    ],
  ])("reads requested addresses from %s", (_, more, args, expected) => {
    expect(decode({ ...SUBNET, ...more }, { args }).requested.map(formatAddress)).toEqual(expected);
  });

  test("keeps routes with their attributes, in canonical text", () => {
    const routes = [{ dst: "2001:db8:2::0/64", gw: "2001:DB8::1", table: 0, mtu: 1400 }, { dst: "0.0.0.0/0" }];
    expect(decode({ ipam: { ...SUBNET.ipam, routes } }).routes).toMatchObject([
      { destination: "2001:db8:2::/64", gateway: "2001:db8::1", table: 0, mtu: 1400 },
      { destination: "0.0.0.0/0", gateway: undefined },
    ]);
  });

  test.each<CniVersion>(["0.1.0", "0.2.0"])("allows %s only one address of each family", (cniVersion) => {
    const both = { ipam: { ranges: [[{ subnet: "10.1.2.0/24" }], [{ subnet: "2001:db8:1::/64" }]] } };
    const twice = { ipam: { ranges: [[{ subnet: "10.1.2.0/24" }], [{ subnet: "10.1.3.0/24" }]] } };
    expect(setsOf(both, { cniVersion })).toHaveLength(2);
    expect(thrownBy(() => decode(twice, { cniVersion })).kind).toBe("config-invalid");
  });

  const range = (...ranges: readonly object[]) => ({ ipam: { ranges: [ranges] } });
  test.each<[string, object, string]>([
    ["no ipam", {}, '"ipam" is missing'],
    ["no range", { ipam: { type: "host-local" } }, '"ipam.ranges" is missing'],
    ["an empty set", { ipam: { ranges: [[]] } }, '"ipam.ranges[0]"'],
    ["ranges that are not in a set", { ipam: { ranges: [{ subnet: "10.1.2.0/24" }] } }, '"ipam.ranges[0]"'],
    ["a range without subnet", range({ rangeStart: "10.1.2.1" }), '"ipam.ranges[0][0].subnet" is missing'],
    ["a subnet without length", range({ subnet: "10.1.2.0" }), '"ipam.ranges[0][0].subnet" is "10.1.2.0"'],
    ["a subnet that is a number", range({ subnet: 10 }), '"ipam.ranges[0][0].subnet" is 10'],
    ["IPv4 host bits", range({ subnet: "10.1.2.5/24" }), 'write "10.1.2.0/24"'],
    ["IPv6 host bits", range({ subnet: "2001:db8:1::5/64" }), 'write "2001:db8:1::/64"'],
    ["a subnet in the mapped space", range({ subnet: "::ffff:10.0.0.0/104" }), '"ipam.ranges[0][0].subnet"'],
    ["a /31", range({ subnet: "10.1.2.0/31" }), "too small"],
    ["a /127", range({ subnet: "2001:db8::/127" }), "too small"],
    ["a start outside", range({ subnet: "10.1.2.0/24", rangeStart: "10.1.3.1" }), 'rangeStart" is "10.1.3.1"'],
    ["an end outside", range({ subnet: "10.1.2.0/24", rangeEnd: "10.1.3.1" }), 'rangeEnd" is "10.1.3.1"'],
    ["a start that is not an address", range({ subnet: "10.1.2.0/24", rangeStart: "x" }), 'rangeStart" is "x"'],
    [
      "a start after the end",
      range({ subnet: "10.1.2.0/24", rangeStart: "10.1.2.9", rangeEnd: "10.1.2.8" }),
      "after the end of the range",
    ],
    ["mixed families", range({ subnet: "10.1.2.0/24" }, { subnet: "2001:db8::/64" }), "a set for each"],
    ["overlap in a set", range({ subnet: "10.1.2.0/24" }, { subnet: "10.1.2.0/25" }), "overlap"],
    ["overlap across sets", { ipam: { subnet: "10.1.2.0/24", ranges: [[{ subnet: "10.1.0.0/16" }]] } }, "overlap"],
    [
      "a requested address that is not an address",
      { ...SUBNET, args: { cni: { ips: ["x"] } } },
      '"args.cni.ips[0]" is "x"',
    ],
    ["a dataDir that is not a string", { ipam: { subnet: "10.1.2.0/24", dataDir: 5 } }, '"ipam.dataDir" is 5'],
  ])("refuses %s, and names the field", (_, config, words) => {
    const failure = thrownBy(() => decode(config));
    expect(failure.kind).toBe("config-invalid");
    expect(failure.message).toContain(words);
  });

  const overlap: [string, object, object, boolean][] = [
    ["apart", { subnet: "10.1.2.0/24" }, { subnet: "10.1.3.0/24" }, false],
    ["of different families", { subnet: "0.0.0.0/0" }, { subnet: "::/0" }, false],
    ["identical", { subnet: "10.1.2.0/24" }, { subnet: "10.1.2.0/24" }, true],
    ["one in the other", { subnet: "10.1.2.0/24" }, { subnet: "10.1.0.0/16" }, true],
    [
      "parts of one subnet",
      { subnet: "10.1.2.0/24", rangeEnd: "10.1.2.9" },
      { subnet: "10.1.2.0/24", rangeStart: "10.1.2.10" },
      false,
    ],
    [
      "parts of one subnet that share an address",
      { subnet: "10.1.2.0/24", rangeEnd: "10.1.2.10" },
      { subnet: "10.1.2.0/24", rangeStart: "10.1.2.10" },
      true,
    ],
  ];
  test.each(overlap)("finds the overlap, if any, of ranges that are %s", (_, left, right, expected) => {
    const config = { ipam: { ranges: [[left], [right]] } };
    if (expected) expect(thrownBy(() => decode(config)).message).toContain("overlap");
    else expect(setsOf(config)).toHaveLength(2);
  });
});

describe("networkDirectory()", () => {
  test("does not need ranges, nor valid ones", () => {
    const ipam = { subnet: "nonsense", dataDir: "/data" };
    expect(networkDirectory({ config: { ipam }, networkName: "n" })).toBe("/data/n");
    expect(networkDirectory({ config: {}, networkName: "n" })).toBe("/var/lib/cni/networks/n");
  });
});
