import { describe, expect, test } from "bun:test";
import { EMPTY_RESULT } from "../../cni/result.ts";
import { formatInterfaceAddress } from "../../ip/prefix.ts";
import { podAddresses } from "./pod-addresses.ts";

const interfaces = [{ name: "veth0" }, { name: "eth0", sandbox: "/ns" }, { name: "eth1", sandbox: "/ns" }];

describe("podAddresses()", () => {
  test.each([
    [
      "the container's, not the host's",
      [
        ["10.0.0.1/24", 0],
        ["10.0.0.2/24", 1],
        ["fd00::2/64", 1],
      ],
      ["10.0.0.2/24", "fd00::2/64"],
    ],
    [
      "the first of each family",
      [
        ["10.0.0.2/24", 1],
        ["10.0.0.3/24", 1],
      ],
      ["10.0.0.2/24"],
    ],
    [
      "one of this interface alone",
      [
        ["10.0.0.9/24", 2],
        ["10.0.0.2/24", 1],
      ],
      ["10.0.0.2/24"],
    ],
    ["one that no interface is told of", [["10.0.0.2/24", undefined]], ["10.0.0.2/24"]],
    ["one whose interface is not in the list", [["10.0.0.2/24", 7]], ["10.0.0.2/24"]],
    ["none where there is none", [], []],
  ] as const)("takes %s", (_, ips, expected) => {
    const result = { ...EMPTY_RESULT, interfaces, ips: ips.map(([address, link]) => ({ address, interface: link })) };
    expect(Object.values(podAddresses(result, "eth0")).map(formatInterfaceAddress)).toEqual([...expected]);
  });
});
