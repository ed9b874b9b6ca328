import { describe, expect, test } from "bun:test";
import { address } from "../../test/support/ip.ts";
import { EMPTY_RESULT } from "../cni/result.ts";
import { chooseDns, resultOf } from "./result.ts";

describe("resultOf()", () => {
  test("lists the host's end, then the container's, which has the addresses", () => {
    const result = resultOf({
      host: { name: "vend0", mac: Uint8Array.of(0xee, 0xee, 0xee, 0xee, 0xee, 0xee), mtu: 1450 },
      container: { name: "eth0", mac: Uint8Array.of(2, 0, 0, 0, 0, 5), mtu: 1450 },
      netns: "/run/netns/a b",
      addresses: [address("10.0.0.5"), address("fd00::5")],
      routes: [{ destination: "0.0.0.0/0", gateway: "169.254.1.1" }],
      dns: EMPTY_RESULT.dns,
    });

    expect(result).toEqual({
      interfaces: [
        { name: "vend0", mac: "ee:ee:ee:ee:ee:ee", mtu: 1450 },
        { name: "eth0", mac: "02:00:00:00:00:05", mtu: 1450, sandbox: "/run/netns/a b" },
      ],
      ips: [
        { address: "10.0.0.5/32", interface: 1 },
        { address: "fd00::5/128", interface: 1 },
      ],
      routes: [{ destination: "0.0.0.0/0", gateway: "169.254.1.1" }],
      dns: EMPTY_RESULT.dns,
    });
  });
});

describe("chooseDns()", () => {
  const given = { nameservers: ["10.0.0.1"], domain: "of.ipam", search: [], options: [] };

  test.each([
    ["no dns", {}],
    ["an empty dns", { dns: {} }],
    ["a dns of nothing", { dns: { nameservers: null } }],
  ])("keeps the IPAM plugin's if the config has %s", (_, config) => {
    expect(chooseDns(config, given)).toEqual(given);
  });

  test.each([
    [
      "one field",
      { nameservers: ["1.1.1.1"] },
      { nameservers: ["1.1.1.1"], domain: undefined, search: [], options: [] },
    ],
    ["an empty list", { search: [] }, { nameservers: [], domain: undefined, search: [], options: [] }],
  ])("takes only the config's if it sets %s", (_, dns, expected) => {
    expect(chooseDns({ dns }, given)).toEqual(expected);
  });
});
