import { describe, expect, test } from "bun:test";
import { identity } from "../../identity.ts";
import { parseAddress } from "../../ip/address.ts";
import { hostEndpoint } from "../../model/host-endpoint.ts";
import { interfaceOwners } from "./host-interfaces.ts";

const ETH0 = { name: "eth0", addresses: ["10.0.0.1", "fd00::1"].flatMap((text) => parseAddress(text) ?? []) };

function owners(specs: Readonly<Record<string, object>>, interfaces = [ETH0]) {
  const endpoints = Object.entries(specs).map(
    ([name, spec]) => [name, hostEndpoint.make({ name }, { node: "here", ...spec })] as const,
  );
  return Object.fromEntries(interfaceOwners(new Map(endpoints), interfaces, [identity.interfacePrefix, "veth"]));
}

describe("interfaceOwners()", () => {
  test.each([
    { name: "a named interface, which need not exist", specs: { a: { interfaceName: "eth7" } }, owned: { eth7: "a" } },
    { name: "all interfaces", specs: { a: { interfaceName: "*" } }, owned: { "*": "a" } },
    { name: "an expected address", specs: { a: { expectedIPs: ["fd00::1"] } }, owned: { eth0: "a" } },
    { name: "an address that no interface has", specs: { a: { expectedIPs: ["10.0.0.2"] } }, owned: {} },
    {
      name: "a name before an address",
      specs: { a: { expectedIPs: ["10.0.0.1"] }, b: { interfaceName: "eth0" } },
      owned: { eth0: "b" },
    },
    {
      name: "the lowest key of two that name it",
      specs: { b: { interfaceName: "eth0" }, a: { interfaceName: "eth0" } },
      owned: { eth0: "a" },
    },
    {
      name: "a name, whatever addresses are expected beside it",
      specs: { a: { interfaceName: "eth1", expectedIPs: ["10.0.0.1"] } },
      owned: { eth1: "a" },
    },
    {
      name: "no interface of a workload",
      specs: { a: { interfaceName: `${identity.interfacePrefix}1` }, b: { interfaceName: "veth1" } },
      owned: {},
    },
  ])("decides by $name", ({ specs, owned }) => {
    expect(owners(specs)).toEqual(owned);
  });
});
