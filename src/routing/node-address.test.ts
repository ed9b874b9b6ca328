import { describe, expect, test } from "bun:test";
import { type Family, parseAddress } from "../ip/address.ts";
import { formatInterfaceAddress, parseInterfaceAddress } from "../ip/prefix.ts";
import type { HostAddress } from "../linux/rtnetlink/host-addresses.ts";
import { parseAddressDetection } from "../model/address-detection.ts";
import { chooseNodeAddress, type HostFacts } from "./node-address.ts";
import { nodeAddresses, withNodeAddresses } from "./node-addresses.ts";

/** `eth0* 10.0.0.5/24`: the star is a default route of the address's family, a plus one of the other family. */
function host(...lines: readonly string[]): readonly HostAddress[] {
  return lines.map((line) => {
    const [name = "", text = ""] = line.split(" ");
    const read = parseInterfaceAddress(text);
    if (read === undefined) throw new Error(`not an address: ${text}`);
    const own = read.address.family;
    const other: Family = own === 4 ? 6 : 4;
    const defaultRoutes = name.endsWith("*") ? [own] : name.endsWith("+") ? [other] : [];
    return { ...read, link: { name: name.replace(/[*+]$/, ""), mtu: 1500, defaultRoutes } };
  });
}

function chosen(
  method: string,
  addresses: readonly HostAddress[],
  {
    family = 4,
    recorded,
    ...facts
  }: Partial<HostFacts> & { readonly family?: Family; readonly recorded?: string } = {},
): string {
  const former = recorded === undefined ? undefined : parseAddress(recorded);
  const choice = chooseNodeAddress(family, parseAddressDetection(method), { addresses, ...facts }, former);
  return choice.kind === "found" ? formatInterfaceAddress(choice.address) : choice.kind;
}

function texts(...all: readonly string[]) {
  return all.flatMap((text) => parseAddress(text) ?? []);
}

describe("chooseNodeAddress()", () => {
  const TWO = host("lo 10.9.9.9/32", "eth0 10.0.0.5/24", "eth1* 10.1.0.5/16", "docker0 172.17.0.1/16");

  test.each([
    ["first-found", "10.1.0.5/16", "prefers the link with a default route"],
    ["interface=eth0", "10.0.0.5/24", "looks only at matching links"],
    ["interface=^en, h0$", "10.0.0.5/24", "matches one of several patterns, anywhere in the name"],
    ["interface=docker.*", "172.17.0.1/16", "may name any link"],
    ["interface=wlan0", "not found", "finds nothing without a matching link"],
    ["skip-interface=eth1", "10.0.0.5/24", "skips links, and those that first-found skips"],
    ["skip-interface=eth.*", "not found", "does not fall back to skipped links"],
    ["cidr=10.0.0.0/24,192.0.2.0/24", "10.0.0.5/24", "looks at addresses"],
    ["cidr=10.1.0.5/32", "10.1.0.5/16", "may name a single address"],
    ["cidr=192.0.2.0/24", "not found", "finds nothing outside the networks"],
    ["none", "not wanted", "wants none"],
  ])("%s: %s: %s", (method, expected) => {
    expect(chosen(method, TWO)).toBe(expected);
  });

  test("first-found takes the first link of other hosts if there is no default route", () => {
    const links = ["docker0", "cbr0", "virbr0", "cni0", "vend1234", "vxlan.vendor", "vxlan-v6.vendor", "tunl0", "lo"];
    const hidden = host(...links.map((name, index) => `${name} 10.${index}.0.1/24`));

    expect(chosen("first-found", hidden)).toBe("not found");
    expect(chosen("first-found", [...hidden, ...host("eth7 10.0.0.7/24", "eth8 10.0.0.8/24")])).toBe("10.0.0.7/24");
  });

  test("first-found uses a link with a default route whatever its name, but never one of a workload", () => {
    expect(chosen("first-found", host("eth0 10.0.0.5/24", "veth0* 10.1.0.5/24"))).toBe("10.1.0.5/24");
    expect(chosen("first-found", host("eth0 10.0.0.5/24", "vend0* 10.1.0.5/24"))).toBe("10.0.0.5/24");
  });

  test("of a family without a default route: that of the link with one of the other family", () => {
    const addresses = host("eth0 fd00:1::5/64", "eth1+ fd00:2::5/64");

    expect(chosen("first-found", addresses, { family: 6 })).toBe("fd00:2::5/64");
    expect(chosen("first-found", addresses)).toBe("not found");
  });

  test("keeps the recorded address while the method could choose it", () => {
    const addresses = host("eth0 10.5.0.1/24", "eth1* 10.0.0.6/24", "eth1* 10.0.0.5/24");

    expect(chosen("first-found", addresses, { recorded: "10.0.0.5" })).toBe("10.0.0.5/24");
    expect(chosen("first-found", addresses, { recorded: "10.0.0.7" })).toBe("10.0.0.6/24");
    expect(chosen("first-found", addresses, { recorded: "10.5.0.1" })).toBe("10.0.0.6/24");
  });

  test("can-reach is the source of packets to the destination, with the length of its network", () => {
    const [reachingFrom] = texts("10.0.0.5");

    expect(chosen("can-reach=192.0.2.1", TWO, { reachingFrom })).toBe("10.0.0.5/24");
    expect(chosen("can-reach=192.0.2.1", TWO)).toBe("not found");
  });

  test("kubernetes-internal-ip is that of the family, also if no link has it", () => {
    const internalAddresses = texts("10.0.0.5", "fd00::5");

    expect(chosen("kubernetes-internal-ip", TWO, { internalAddresses })).toBe("10.0.0.5/24");
    expect(chosen("kubernetes-internal-ip", TWO, { internalAddresses, family: 6 })).toBe("fd00::5/128");
    expect(chosen("kubernetes-internal-ip", TWO, { internalAddresses: [] })).toBe("not found");
    expect(chosen("kubernetes-internal-ip", TWO)).toBe("not found");
  });
});

describe("nodeAddresses()", () => {
  const addresses = host("eth0* 10.0.0.5/24", "eth0* fd00::5/64");
  const facts = () => ({ addresses });
  const FIRST = { ipv4AddressDetection: "first-found", ipv6AddressDetection: "first-found" };

  test("keeps other fields, and tells the links", () => {
    const found = nodeAddresses({ asNumber: 64512, ipv4Address: "10.9.9.9/24" }, FIRST, facts);

    expect(found.bgp).toEqual({ asNumber: 64512, ipv4Address: "10.0.0.5/24", ipv6Address: "fd00::5/64" });
    expect([found.links.map(({ name }) => name), found.problems]).toEqual([["eth0", "eth0"], []]);
  });

  test("keeps the recorded address if the method finds nothing, and names method, state and fix", () => {
    const settings = { ...FIRST, ipv4AddressDetection: "interface=wlan0" };
    const { bgp, problems } = nodeAddresses({ ipv4Address: "10.9.9.9/24" }, settings, facts);

    expect(bgp?.ipv4Address).toBe("10.9.9.9/24");
    expect(problems).toHaveLength(1);
    for (const part of ["IPv4", '"interface=wlan0"', "10.9.9.9/24 stays", "ipv4AddressDetection"])
      expect(problems[0]).toContain(part);
  });

  test("has no problem on a host without IPv6, but one if an address was recorded", () => {
    const onlyIpv4 = () => ({ addresses: addresses.slice(0, 1) });

    expect(nodeAddresses(undefined, FIRST, onlyIpv4).problems).toEqual([]);
    expect(nodeAddresses({ ipv6Address: "fd00::5/64" }, FIRST, onlyIpv4).problems).toHaveLength(1);
  });

  test("removes an address that is not wanted", () => {
    const settings = { ipv4AddressDetection: "none", ipv6AddressDetection: "none" };
    const found = nodeAddresses({ ipv4Address: "10.0.0.5/24" }, settings, facts);

    expect([found.bgp, found.problems]).toEqual([undefined, []]);
    expect(withNodeAddresses({ bgp: { ipv4Address: "10.0.0.5/24" } }, found, [])).toEqual({ addresses: [] });
  });

  test("are listed with all addresses of the links with a default route", () => {
    const all = [...addresses, ...host("eth1 10.1.0.5/24", "vxlan.vendor 10.244.0.0/32")];
    const settings = { ...FIRST, ipv4AddressDetection: "interface=eth1" };
    const found = nodeAddresses(undefined, settings, () => ({ addresses: all }));

    const listed = ["10.1.0.5/24", "fd00::5/64", "10.0.0.5/24"];
    expect(withNodeAddresses({}, found, all).addresses?.map(({ address }) => address)).toEqual(listed);
    const before = ["InternalIP", "ExternalIP"].map((type, index) => ({ address: `192.0.2.${index}`, type }));
    const after = withNodeAddresses({ addresses: before }, found, all);
    expect(after.addresses?.map(({ address }) => address)).toEqual([...listed, "192.0.2.1"]);
  });
});
