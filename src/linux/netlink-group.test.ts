import { describe, expect, test } from "bun:test";
import { errnoOf } from "./errno.ts";
import type { NetlinkChannel } from "./netlink-channel.ts";
import { drain } from "./netlink-group.ts";
import { socketOn } from "./netlink-socket.ts";

/** A socket to which this many datagrams have arrived, each of two messages without content. */
function socketWith(datagrams: number, lostAt = -1) {
  let left = datagrams;
  let isLost = false;
  const message = Uint8Array.fromHex("10000000000400000000000000000000");
  const channel: Pick<NetlinkChannel, "receive"> = {
    receive(buffer) {
      if (left === 0) return -errnoOf("EAGAIN");
      if (left === lostAt && !isLost) {
        isLost = true;
        return -errnoOf("ENOBUFS");
      }
      left -= 1;
      buffer.set(message, 0);
      buffer.set(message, message.length);
      return 2 * message.length;
    },
  };
  return { socket: socketOn(channel as NetlinkChannel, "netfilter"), left: () => left };
}

describe("drain()", () => {
  test("reads all that has arrived", () => {
    const { socket, left } = socketWith(3);
    let count = 0;
    expect(drain(socket, () => void count++)).toBe("complete");
    expect([count, left()]).toEqual([6, 0]);
  });

  test("stops after the wanted number of messages, however many still arrive", () => {
    const { socket, left } = socketWith(1_000);
    let count = 0;
    expect(drain(socket, () => void count++, 11)).toBe("more");
    expect([count, left()]).toEqual([12, 994]);
  });

  test("says that messages were lost, and whether it stopped after the wanted number", () => {
    expect(drain(socketWith(3, 2).socket, () => {}, 11)).toBe("lost");
    expect(drain(socketWith(1_000, 998).socket, () => {}, 11)).toBe("lost and more");
  });
});
