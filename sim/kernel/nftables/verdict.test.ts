import { describe, expect, test } from "bun:test";
import { applyFloating } from "../../../src/firewall/apply-floating.ts";
import { applyNat } from "../../../src/firewall/apply-nat.ts";
import { allowedChanges, clusterChanges, guardChanges } from "../../../src/firewall/guard-rules.ts";
import { identity } from "../../../src/identity.ts";
import { formatAddress } from "../../../src/ip/address.ts";
import { rangeOfPrefix } from "../../../src/ip/range.ts";
import { commit } from "../../../src/linux/nftables/commit.ts";
import type { Packet } from "../../../src/policy/judge/packet.ts";
import { address, prefix } from "../../../test/support/ip.ts";
import { ModelSockets } from "./model-sockets.ts";
import { type NetfilterSurroundings, newFlow, type PacketAtHook, verdictOf } from "./verdict.ts";

const POD = { index: 7, name: `${identity.interfacePrefix}pod` };
const UPLINK = { index: 2, name: "eth0" };
const OWN = "192.0.2.1";

/** A host with one pod, 10.0.0.1. */
const surroundings: NetfilterSurroundings = {
  route(to) {
    const text = formatAddress(to);
    if (text === OWN) return { type: "local", oifs: [1] };
    return { type: "unicast", oifs: [text === "10.0.0.1" ? POD.index : UPLINK.index] };
  },
  addressOf: () => address(OWN),
  nameOf: () => undefined,
};

const packet = (source: string, destination: string): Packet => ({
  source: address(source),
  destination: address(destination),
  protocol: 6,
  sourcePort: 4000,
  destinationPort: 80,
});

const outcome = (sockets: ModelSockets, at: PacketAtHook, flow = newFlow()) => {
  const { verdict, packet, by } = verdictOf(sockets.state, at, flow, surroundings);
  return { verdict, from: formatAddress(packet.source), to: formatAddress(packet.destination), table: by?.table };
};

describe("verdictOf()", () => {
  test("drops what a pod sends with a source that is not its own, unless it is allowed", () => {
    const sockets = new ModelSockets();
    const socket = sockets.open();
    commit(socket, guardChanges());
    const from = (source: string) =>
      outcome(sockets, { hook: "prerouting", iif: POD, packet: packet(source, "10.0.9.9") }).verdict;
    const sources = ["10.0.0.1", "10.0.0.2", OWN];

    const before = sources.map(from);
    const range = rangeOfPrefix(prefix("10.0.0.0/30"));
    commit(socket, allowedChanges({ removed: [], added: [{ linkIndex: POD.index, range }] }));

    expect(before).toEqual(["accept", "drop", "drop"]);
    // Until the addresses of pools and nodes are known, nothing else is accepted.
    expect(sources.map(from)).toEqual(["accept", "drop", "drop"]);
    commit(socket, clusterChanges(4, [rangeOfPrefix(prefix("10.0.1.0/24"))]));
    expect(sources.map(from)).toEqual(["accept", "accept", "drop"]);
    commit(socket, clusterChanges(4, [range]));
    expect(sources.map(from)).toEqual(["accept", "drop", "drop"]);
  });

  test("masquerades what leaves the pools", async () => {
    const sockets = new ModelSockets();
    await applyNat(sockets.open(), [{ cidr: prefix("10.0.0.0/16"), natOutgoing: true }]);
    const leaving = (destination: string, state?: "established") =>
      outcome(
        sockets,
        { hook: "postrouting", iif: POD, oif: UPLINK, packet: packet("10.0.0.1", destination) },
        newFlow(state),
      ).from;

    expect(leaving("10.0.9.9")).toBe("10.0.0.1");
    expect(leaving("198.51.100.1")).toBe(OWN);
    expect(leaving("198.51.100.1", "established")).toBe("10.0.0.1");
  });

  test("leads a floating address to its pod, and hides the pod from itself", () => {
    const sockets = new ModelSockets();
    const floating = { external: address("203.0.113.5"), internal: address("10.0.0.1") };
    applyFloating(sockets.open(), [floating]);
    const flow = newFlow();

    const first = outcome(sockets, { hook: "prerouting", iif: POD, packet: packet("10.0.0.1", "203.0.113.5") }, flow);
    const second = outcome(
      sockets,
      { hook: "postrouting", iif: POD, oif: POD, packet: packet(first.from, first.to) },
      flow,
    );

    expect(first).toEqual({ verdict: "accept", from: "10.0.0.1", to: "10.0.0.1", table: identity.floatingTable });
    expect(second.from).toBe("203.0.113.5");
  });
});
