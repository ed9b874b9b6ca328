import { describe, expect, test } from "bun:test";
import { prefix } from "../../../test/support/ipam.ts";
import { identity } from "../../identity.ts";
import type { NetworkEvent } from "../../linux/rtnetlink/network-monitor.ts";
import { ROUTE_PROTOCOL } from "../../linux/rtnetlink/route.ts";
import { HostChanges } from "./host-change.ts";

const POD = `${identity.interfacePrefix}0123`;

function link(index: number, name: string, mtu = 1500): NetworkEvent {
  const rest = { isUp: true, mac: new Uint8Array(6), transmitQueues: 1, receiveQueues: 1 };
  return { kind: "link", change: "put", link: { index, name, mtu, ...rest } };
}

function newAddress(linkIndex: number): NetworkEvent {
  const address = { linkIndex, address: prefix("192.0.2.7/32").network, length: 24, scope: "universe" } as const;
  return { kind: "address", change: "put", address: { ...address, isTentative: false } };
}

function route(destination: string, protocol?: number): NetworkEvent {
  const given = { destination: prefix(destination), ...(protocol === undefined ? {} : { protocol }) };
  return { kind: "route", change: "put", route: given };
}

describe("HostChanges", () => {
  test("ignores links of workloads, and repeated messages about one state", () => {
    const changes = new HostChanges();
    const relevant = (event: NetworkEvent) => changes.isRelevant(event);

    expect([relevant(link(2, "eth0")), relevant(link(2, "eth0")), relevant(link(2, "eth0", 9000))]).toEqual([
      true,
      false,
      true,
    ]);
    expect([relevant(link(7, POD)), relevant(newAddress(7))]).toEqual([false, false]);
    expect(relevant({ kind: "link", change: "delete", linkIndex: 7 })).toBe(false);
    expect(relevant(newAddress(2))).toBe(true);
    expect(relevant(newAddress(9))).toBe(true);
    expect(relevant({ kind: "link", change: "delete", linkIndex: 2 })).toBe(true);
  });

  test("looks at routes to more than one address, except the product's own", () => {
    const changes = new HostChanges();
    const routes = [route("0.0.0.0/0"), route("192.0.2.0/24"), route("10.0.0.5/32"), route("fd00::5/128")];

    expect(routes.map((event) => changes.isRelevant(event))).toEqual([true, true, false, false]);
    expect(changes.isRelevant(route("10.0.0.0/26", ROUTE_PROTOCOL.own))).toBe(false);
  });

  test("ignores what routing programs learn, except default routes", () => {
    const changes = new HostChanges();
    const relevant = (destination: string, protocol: number) => changes.isRelevant(route(destination, protocol));

    expect([relevant("10.0.0.0/26", ROUTE_PROTOCOL.bird), relevant("10.0.0.0/26", 186)]).toEqual([false, false]);
    expect([relevant("0.0.0.0/0", ROUTE_PROTOCOL.bird), relevant("192.0.2.0/24", 16)]).toEqual([true, true]);
  });
});
