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

function logged(
  requests: Parameters<typeof logAnnouncements>[0],
  state: string | undefined = '{"kind":"running","problems":[]}',
): readonly string[] {
  const lines: string[] = [];
  const log = {
    info: (message: string) => void lines.push(`INFO ${message}`),
    warning: (message: string) => void lines.push(`WARNING ${message}`),
  };
  const readText = (path: string) => (path === "/run/x/bird/state.json" ? state : undefined);
  logAnnouncements(requests, POOLS, { log, surroundings: { runDirectory: "/run/x", readText } });
  return lines;
}

const WITHOUT = "is not announced to other hosts:";
const END = "arrange a route to it yourself";
const IPIP = 'is routed by the other nodes, because pool "ipip" is in IPIP mode, and';

describe("logAnnouncements()", () => {
  test("says for each address without IPAM whether other hosts learn a route to it", () => {
    const value = addresses("10.1.0.5", "10.2.0.5", "10.3.0.5", "10.4.0.5", "192.0.2.5", "fd00::5");

    expect(logged({ pools: {}, addressesWithoutIpam: { value, place: "the annotation" } })).toEqual([
      'INFO "10.1.0.5" (the annotation) is announced to other hosts by BGP: pool "plain" has no tunnel',
      `WARNING "10.2.0.5" (the annotation) ${WITHOUT} pool "vxlan" is in VXLAN mode; ${END}`,
      `INFO "10.3.0.5" (the annotation) ${IPIP} announced to routers by BGP`,
      `WARNING "10.4.0.5" (the annotation) ${WITHOUT} pool "kept" has disableBGPExport; ${END}`,
      `WARNING "192.0.2.5" (the annotation) ${WITHOUT} it is in no pool; ${END}`,
      `WARNING "fd00::5" (the annotation) ${WITHOUT} pool "six" is in VXLAN mode; ${END}`,
    ]);
  });

  test("says the same for floating IPs, which are announced in any pool", () => {
    const value = addresses("10.1.0.6", "10.2.0.6", "10.3.0.6", "10.4.0.6", "192.0.2.6");
    const routers = "so other nodes reach it through a router that has learned it";

    expect(logged({ pools: {}, floatingAddresses: { value, place: "floating" } })).toEqual([
      'INFO "10.1.0.6" (floating) is announced to other hosts by BGP: pool "plain" has no tunnel',
      `INFO "10.2.0.6" (floating) is announced by BGP: pool "vxlan" is in VXLAN mode, ${routers}`,
      `INFO "10.3.0.6" (floating) is announced by BGP: pool "ipip" is in IPIP mode, ${routers}`,
      `WARNING "10.4.0.6" (floating) ${WITHOUT} pool "kept" has disableBGPExport; ${END}`,
      `WARNING "192.0.2.6" (floating) ${WITHOUT} it is in no pool; ${END}`,
    ]);
  });

  test.each([
    ['{"kind":"not needed","reason":"no peers","problems":[]}', "BGP does not run on this host (no peers)"],
    ['{"kind":"failed","reason":"no bird","problems":[]}', "BGP does not run on this host (no bird)"],
    ["{", "the node agent has not started BGP on this host"],
    ["", "the node agent has not started BGP on this host"],
  ])("if BGP does not run, it says so: %s", (state, reason) => {
    const value = addresses("10.1.0.5", "10.3.0.5");

    const hasAgent = state.length > 1;
    expect(logged({ pools: {}, addressesWithoutIpam: { value, place: "the annotation" } }, state)).toEqual([
      `WARNING "10.1.0.5" (the annotation) ${WITHOUT} ${reason}; ${END}`,
      hasAgent
        ? `INFO "10.3.0.5" (the annotation) ${IPIP} not announced to routers: ${reason}`
        : `WARNING "10.3.0.5" (the annotation) ${WITHOUT} the node agent has not started on this host; ${END}`,
    ]);
    expect(
      logged({ pools: {}, floatingAddresses: { value: addresses("10.2.0.6"), place: "floating" } }, state),
    ).toEqual([`WARNING "10.2.0.6" (floating) ${WITHOUT} ${reason}; ${END}`]);
  });

  test("if this node does not route, other nodes do not reach it through a tunnel either", () => {
    const state = '{"kind":"not needed","reason":"routing is off","routing":"Disabled","problems":[]}';

    expect(
      logged({ pools: {}, addressesWithoutIpam: { value: addresses("10.3.0.5"), place: "the annotation" } }, state),
    ).toEqual([`WARNING "10.3.0.5" (the annotation) ${WITHOUT} this node does not route (routing is off); ${END}`]);
  });

  test("BGP announces only addresses of the families that it has sessions of", () => {
    const state = (families: string) => `{"kind":"running",${families}"problems":[]}`;
    const floatingAddresses = { value: addresses("10.1.0.6", "fd00::6"), place: "floating" };
    const levels = (families: string) =>
      logged({ pools: {}, floatingAddresses }, state(families)).map((line) => line.split(" ")[0]);

    expect(levels('"families":[4],')).toEqual(["INFO", "WARNING"]);
    expect(levels('"families":[4,6],')).toEqual(["INFO", "INFO"]);
    // Of an earlier release.
    expect(levels("")).toEqual(["INFO", "INFO"]);
  });

  test("says nothing about other addresses", () => {
    const value = addresses("10.2.0.6");

    expect(logged({ pools: {}, addresses: { value, place: "ipAddrs" } })).toEqual([]);
  });
});
