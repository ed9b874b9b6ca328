import { describe, expect, test } from "bun:test";
import { thrownBy } from "../../../test/support/thrown-by.ts";
import { decodeHostLocal } from "./config.ts";
import { podCidrPlaces, withAnyAddress, withExampleRanges, withPodCidrs } from "./pod-cidr.ts";

const NODE = { node: "node-1", podCidrs: ["10.244.3.0/24", "fd00:10:244:3::/64"] };

const FLAT = { name: "net", ipam: { type: "host-local", subnet: "usePodCidr", dataDir: "/d", routes: [] } };
const LISTED = {
  ipam: {
    type: "host-local",
    ranges: [
      [{ subnet: "USEPODCIDR", gateway: "10.244.3.9" }, { subnet: "10.1.0.0/16" }],
      [{ Subnet: "usePodCidrIPv6" }],
    ],
  },
};

describe("podCidrPlaces()", () => {
  test.each([
    [FLAT, [["ipam.subnet", 4]]],
    [
      LISTED,
      [
        ["ipam.ranges[0][0].subnet", 4],
        ["ipam.ranges[1][0].subnet", 6],
      ],
    ],
    [{ ipam: { subnet: "10.1.0.0/16", ranges: [[{}], "usePodCidr"] } }, []],
    [{}, []],
  ])("finds the words of %j in any case", (config, places) => {
    expect(podCidrPlaces(config).map(({ place, family }): unknown => [place, family])).toEqual(places);
  });
});

describe("withPodCidrs()", () => {
  test("replaces the words alone, and keeps every other field", () => {
    expect(withPodCidrs(FLAT, NODE)).toEqual({ ...FLAT, ipam: { ...FLAT.ipam, subnet: "10.244.3.0/24" } });
    expect(withPodCidrs(LISTED, NODE)).toEqual({
      ipam: {
        type: "host-local",
        ranges: [
          [{ subnet: "10.244.3.0/24", gateway: "10.244.3.9" }, { subnet: "10.1.0.0/16" }],
          [{ Subnet: "fd00:10:244:3::/64" }],
        ],
      },
    });
  });

  test.each([
    ["without a range", [], "try-again-later", 'has no IPv4 range: its "spec.podCIDRs" is empty'],
    [
      "of the other family",
      ["fd00::/64"],
      "config-invalid",
      'has no IPv4 range: its "spec.podCIDRs" contains "fd00::/64"',
    ],
    ["with two of a family", ["10.1.0.0/24", "10.2.0.0/24"], "config-invalid", "has more than one IPv4 range"],
    ["with something else", ["10.1.0.0"], "config-invalid", "has no IPv4 range"],
  ])("refuses a Node %s", (_, podCidrs, kind, says) => {
    const failure = thrownBy(() => withPodCidrs(FLAT, { node: "node-1", podCidrs }));

    expect(failure).toMatchObject({ kind });
    expect(failure.message).toContain('Cannot use "ipam.subnet" "usePodCidr": Node "node-1"');
    expect(failure.message).toContain(says);
    expect(failure.details).not.toBe("");
  });
});

describe("withAnyAddress()", () => {
  test("is a valid config in which all addresses are in the ranges, whatever the ranges were", () => {
    const config = {
      runtimeConfig: { ipRanges: [[{ subnet: "10.9.0.0/16" }]], mac: "02:00:00:00:00:01" },
      ipam: { ...LISTED.ipam, dataDir: "/d", subnet: "usePodCidr", rangeStart: "10.244.3.7" },
    };

    const any = withAnyAddress(config);

    const { rangeSets, directory } = decodeHostLocal({
      config: any,
      cniVersion: "0.2.0",
      networkName: "net",
      args: "",
    });
    expect(rangeSets).toHaveLength(2);
    expect(directory).toBe("/d/net");
    expect(any["runtimeConfig"]).toEqual({ mac: "02:00:00:00:00:01" });
  });
});

describe("withExampleRanges()", () => {
  test.each([
    [[[{ subnet: "usePodCidr" }], [{ subnet: "usePodCidrIPv6" }]], undefined],
    [
      [[{ subnet: "usePodCidr", rangeStart: "10.244.3.9", gateway: "10.244.3.1" }], [{ subnet: "10.1.0.0/16" }]],
      undefined,
    ],
    [[[{ subnet: "usePodCidr" }, { subnet: "usePodCidrIPv6" }]], "mixes IPv4 and IPv6"],
    [[[{ subnet: "usePodCidr" }], [{ subnet: "usePodCidr" }]], "overlap"],
    [[[{ subnet: "usePodCidr", rangeStart: "10.0.0.9", rangeEnd: "10.0.0.8" }]], "after the end of the range"],
  ])("lets the rest of %j be checked", (ranges, says) => {
    const config = withExampleRanges({ ipam: { type: "host-local", ranges } });
    const decode = () => void decodeHostLocal({ config, cniVersion: "1.0.0", networkName: "net", args: "" });

    if (says === undefined) expect(decode).not.toThrow();
    else expect(thrownBy(decode).message).toContain(says);
  });
});
