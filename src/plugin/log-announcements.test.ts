import { describe, expect, test } from "bun:test";
import { poolChange } from "../../test/support/ipam.ts";
import type { Address } from "../ip/address.ts";
import { parseAddress } from "../ip/address.ts";
import { decodePool } from "../ipam/records.ts";
import { logAnnouncements } from "./log-announcements.ts";

function pool(name: string, cidr: string, spec: object = {}) {
  const change = poolChange(name, cidr, spec);
  return decodePool({ key: change.key, value: "value" in change ? change.value : "", revision: "1" });
}

const POOLS = [
  pool("plain", "10.1.0.0/16"),
  pool("vxlan", "10.2.0.0/16", { vxlanMode: "CrossSubnet" }),
  pool("ipip", "10.3.0.0/16", { ipipMode: "Always" }),
  pool("kept", "10.4.0.0/16", { disableBGPExport: true }),
  pool("six", "fd00::/64", { vxlanMode: "Always" }),
];

function addresses(...texts: readonly string[]): readonly Address[] {
  return texts.flatMap((text) => parseAddress(text) ?? []);
}

function logged(requests: Parameters<typeof logAnnouncements>[0]): readonly string[] {
  const lines: string[] = [];
  const log = {
    info: (message: string) => void lines.push(`INFO ${message}`),
    warning: (message: string) => void lines.push(`WARNING ${message}`),
  };
  logAnnouncements(requests, POOLS, log);
  return lines;
}

describe("logAnnouncements()", () => {
  test("says for each address without IPAM whether other hosts learn a route to it", () => {
    const value = addresses("10.1.0.5", "10.2.0.5", "10.3.0.5", "10.4.0.5", "192.0.2.5", "fd00::5");
    const without = "is not announced to other hosts:";
    const end = "arrange a route to it yourself";

    expect(logged({ pools: {}, addressesWithoutIpam: { value, place: "the annotation" } })).toEqual([
      'INFO "10.1.0.5" (the annotation) is announced to other hosts by BGP: pool "plain" has no tunnel',
      `WARNING "10.2.0.5" (the annotation) ${without} pool "vxlan" is in VXLAN mode; ${end}`,
      `WARNING "10.3.0.5" (the annotation) ${without} pool "ipip" is in IPIP mode; ${end}`,
      `WARNING "10.4.0.5" (the annotation) ${without} pool "kept" has disableBGPExport; ${end}`,
      `WARNING "192.0.2.5" (the annotation) ${without} it is in no pool; ${end}`,
      `WARNING "fd00::5" (the annotation) ${without} pool "six" is in VXLAN mode; ${end}`,
    ]);
  });

  test("says the same for floating IPs", () => {
    const value = addresses("10.2.0.6");

    expect(logged({ pools: {}, floatingAddresses: { value, place: "floating" } })).toEqual([
      'WARNING "10.2.0.6" (floating) is not announced to other hosts: pool "vxlan" is in VXLAN mode; arrange a route to it yourself',
    ]);
  });

  test("says nothing about other addresses", () => {
    const value = addresses("10.2.0.6");

    expect(logged({ pools: {}, addresses: { value, place: "ipAddrs" } })).toEqual([]);
  });
});
