import { describe, expect, test } from "bun:test";
import { prefix } from "../../../test/support/ipam.ts";
import { formatAddress } from "../../ip/address.ts";
import { assignOrdinal, emptyBlock } from "../block.ts";
import { type IsKept, leakedAddresses } from "./gc.ts";

const ALLOCATIONS: readonly (readonly [handle: string, secondary: Record<string, string>])[] = [
  ["net.kept", { node: "n", network: "net", interface: "eth0" }],
  ["net.kept", { node: "n", network: "net", interface: "eth1" }],
  ["net.gone", { node: "n", network: "net", interface: "eth0" }],
  ["net.gone", { node: "other", network: "net", interface: "eth0" }],
  ["net.b.gone", { node: "n", network: "net.b", interface: "eth0" }],
  ["net.b.gone", { node: "n" }],
  ["net.old", { node: "n" }],
  ["netgone", { node: "n" }],
];
const block = ALLOCATIONS.reduce(
  (before, [handleId, secondary], ordinal) => assignOrdinal(before, ordinal, { handleId, secondary })?.block ?? before,
  emptyBlock(prefix("10.0.0.0/28"), undefined, 5n),
);

describe("leakedAddresses()", () => {
  test("finds this network's leaked addresses on this node, interface by interface", () => {
    const isKept: IsKept = (containerId, ifname) => containerId === "kept" && ifname === "eth0";

    const leaked = leakedAddresses(block, { network: "net", node: "n", isKept });

    expect(leaked.map((each) => formatAddress(each.address))).toEqual(["10.0.0.1", "10.0.0.2", "10.0.0.6"]);
    expect(leaked.map((each) => each.sequenceNumber)).toEqual([6n, 7n, 11n]);
  });

  test("does not mistake a network with a dot for a container of the network with the shorter name", () => {
    const leaked = leakedAddresses(block, { network: "net.b", node: "n", isKept: () => false });

    expect(leaked.map((each) => formatAddress(each.address))).toEqual(["10.0.0.4", "10.0.0.5"]);
  });
});
