import { describe, expect, test } from "bun:test";
import { type Prefix, parsePrefix } from "../ip/prefix.ts";
import { formatRange } from "../ip/range.ts";
import { clusterSources } from "./cluster-sources.ts";

const prefixes = (...texts: readonly string[]): readonly Prefix[] => texts.flatMap((text) => parsePrefix(text) ?? []);
const NODE = {
  bgp: { ipv4Address: "192.0.2.1/24", ipv6Address: "2001:db8::1/64", ipv4IPIPTunnelAddr: "10.9.0.1" },
  ipv4VXLANTunnelAddr: "10.9.0.2",
  addresses: [{ address: "198.51.100.1" }, { address: "192.0.2.1/24" }],
  podCIDRs: ["10.77.0.0/24", "fd77::/64"],
};

describe("clusterSources()", () => {
  test("has the pools, and all addresses and pod ranges of nodes, merged", () => {
    const sources = clusterSources({ pools: prefixes("10.9.0.0/24", "10.8.0.0/24"), nodes: [NODE], permitted: [] });

    expect(sources[4].map(formatRange)).toEqual([
      "10.8.0.0-10.8.0.255",
      "10.9.0.0-10.9.0.255",
      "10.77.0.0-10.77.0.255",
      "192.0.2.1-192.0.2.1",
      "198.51.100.1-198.51.100.1",
    ]);
    expect(sources[6].map(formatRange)).toEqual(["2001:db8::1-2001:db8::1", "fd77::-fd77::ffff:ffff:ffff:ffff"]);
  });

  test.each<readonly [permitted: readonly string[], left: readonly string[]]>([
    [["10.8.0.0/24"], []],
    [["10.0.0.0/8"], []],
    [["10.9.0.0/24"], ["10.8.0.0-10.8.0.255"]],
    [["10.8.0.0/25"], ["10.8.0.128-10.8.0.255"]],
    [["10.8.0.128/25"], ["10.8.0.0-10.8.0.127"]],
    [
      ["10.8.0.5/32", "10.8.0.64/26"],
      ["10.8.0.0-10.8.0.4", "10.8.0.6-10.8.0.63", "10.8.0.128-10.8.0.255"],
    ],
  ])("leaves out what the administrator permits: %p", (permitted, left) => {
    const sources = clusterSources({ pools: prefixes("10.8.0.0/24"), nodes: [], permitted: prefixes(...permitted) });

    expect(sources[4].map(formatRange)).toEqual([...left]);
  });
});
