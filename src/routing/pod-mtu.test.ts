import { describe, expect, test } from "bun:test";
import { podMtu } from "./pod-mtu.ts";

const plain = { cidr: "10.0.0.0/16", ipipMode: "Never", vxlanMode: "Never" } as const;

describe("podMtu()", () => {
  test.each([
    ["no pool", 1500, [], 1500],
    ["no tunnel", 9000, [plain], 9000],
    ["IPIP", 1500, [plain, { ...plain, ipipMode: "Always" }], 1480],
    [
      "VXLAN",
      1500,
      [
        { ...plain, vxlanMode: "CrossSubnet" },
        { ...plain, ipipMode: "Always" },
      ],
      1450,
    ],
    [
      "VXLAN over IPv6",
      1500,
      [
        { ...plain, vxlanMode: "Always" },
        { ...plain, cidr: "fd00::/64", vxlanMode: "Always" },
      ],
      1430,
    ],
    ["a loopback link alone", 65_536, [], 65_535],
  ] as const)("with %s leaves room for the tunnels", (_, uplink, pools, expected) => {
    expect(podMtu(uplink, pools)).toBe(expected);
  });

  test("is unknown without a link to other hosts", () => {
    expect(podMtu(undefined, [plain])).toBeUndefined();
  });
});
