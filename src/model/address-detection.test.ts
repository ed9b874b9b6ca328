import { describe, expect, test } from "bun:test";
import { parsePrefix } from "../ip/prefix.ts";
import { parseAddressDetection } from "./address-detection.ts";
import { nodeAgentConfiguration } from "./node-agent-configuration.ts";

function problemsOf(spec: object) {
  const { apiVersion, kind } = nodeAgentConfiguration.make({ name: "default" }, {});
  const decoded = nodeAgentConfiguration.decode({ apiVersion, kind, metadata: { name: "default" }, spec });
  return decoded.ok ? [] : decoded.problems;
}

describe("methods of address detection", () => {
  test.each([
    "first-found",
    "kubernetes-internal-ip",
    "none",
    "interface=eth.*",
    "interface=^eth0$, ens[0-9]+",
    "skip-interface=docker.*,br-.*",
    "can-reach=192.0.2.1",
    "can-reach=gateway.example.org",
    "cidr=192.0.2.0/24,198.51.100.0/25",
  ])("accepts %s", (method) => {
    expect(problemsOf({ ipv4AddressDetection: method })).toEqual([]);
  });

  test.each([
    ["can-ping=192.0.2.1", 'use "first-found"'],
    ["", 'use "first-found"'],
    ["interface=", 'has "", which is not a regular expression'],
    ["interface=eth(", 'has "eth(", which is not a regular expression'],
    ["skip-interface=eth0,", 'has "", which is not a regular expression'],
    ["can-reach=no host", "which is neither an IPv4 address nor a host name"],
    ["can-reach=2001:db8::1", "which is neither an IPv4 address nor a host name"],
    ["cidr=192.0.2.1/24", 'has "192.0.2.1/24", which is not an IPv4 CIDR; use for example "cidr=192.0.2.0/24"'],
    ["cidr=2001:db8::/64", 'has "2001:db8::/64", which is not an IPv4 CIDR'],
  ])("refuses %j", (method, message) => {
    const problems = problemsOf({ ipv4AddressDetection: method });

    expect(problems.map(({ path, value }) => ({ path, value }))).toEqual([
      { path: "spec.ipv4AddressDetection", value: method },
    ]);
    expect(problems[0]?.message).toContain(message);
  });

  test("accepts addresses of the other family in the other field", () => {
    expect(problemsOf({ ipv6AddressDetection: "cidr=2001:db8::/64" })).toEqual([]);
    expect(problemsOf({ ipv6AddressDetection: "can-reach=2001:db8::1" })).toEqual([]);
    expect(problemsOf({ ipv6AddressDetection: "can-reach=192.0.2.1" })).toHaveLength(1);
  });
});

describe("parseAddressDetection()", () => {
  test("splits lists", () => {
    expect(parseAddressDetection("interface=eth.*, ens3")).toEqual({ kind: "interface", patterns: [/eth.*/, /ens3/] });
    expect(parseAddressDetection("cidr=192.0.2.0/24")).toEqual({
      kind: "cidr",
      cidrs: [parsePrefix("192.0.2.0/24")].filter((each) => each !== undefined),
    });
    expect(parseAddressDetection("can-reach=example.org")).toEqual({ kind: "can-reach", destination: "example.org" });
    expect(parseAddressDetection("kubernetes-internal-ip")).toEqual({ kind: "internal-ip" });
  });
});
