import { describe, expect, test } from "bun:test";
import { type CapturedPacket, parsePacket } from "../support/packet-capture.ts";
import { connectionsIn } from "./captured-connections.ts";

const packet = (source: string, destination: string, more: Partial<CapturedPacket> = {}): CapturedPacket => ({
  ...{
    family: 4,
    protocol: 6,
    source,
    destination,
    sourcePort: 1,
    destinationPort: 1,
    tcpFlags: 0,
    bytes: 60,
    payload: 20,
  },
  ...more,
});

describe("connectionsIn()", () => {
  test("counts both ways, from the point of view of who sent first", () => {
    const packets = [packet("a", "b"), packet("b", "a", { bytes: 40, payload: 0 }), packet("a", "b"), packet("c", "b")];

    expect(connectionsIn(packets)).toEqual([
      {
        ...{ family: 4, protocol: 6, source: "a", sourcePort: 1, destination: "b", destinationPort: 1 },
        sent: { packets: 2, bytes: 120, payload: 40 },
        received: { packets: 1, bytes: 40, payload: 0 },
      },
      expect.objectContaining({ source: "c", received: { packets: 0, bytes: 0, payload: 0 } }),
    ]);
  });

  test("neither errors nor neighbour discovery are connections", () => {
    const unreachable = packet("a", "b", { protocol: 1, icmp: { type: 3, code: 3 } });
    const neighbour = packet("a", "b", { protocol: 58, icmp: { type: 135, code: 0 } });

    expect(connectionsIn([unreachable, neighbour, packet("a", "b", { protocol: 2 })])).toEqual([]);
  });
});

describe("parsePacket()", () => {
  test("reads the headers of a datagram, and takes its length from outside", () => {
    const udp = [0x30, 0x39, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4];
    const bytes = Uint8Array.of(0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, ...udp);

    expect(parsePacket(bytes, 1_028)).toEqual({
      ...{ family: 4, protocol: 17, source: "10.0.0.1", destination: "10.0.0.2" },
      ...{ sourcePort: 12_345, destinationPort: 53, tcpFlags: 0, bytes: 1_028, payload: 1_000 },
    });
    expect(parsePacket(Uint8Array.of(0, 1, 8, 0), 4)).toBeUndefined();
  });
});
