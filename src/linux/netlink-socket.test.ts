import { describe, expect, test } from "bun:test";
import { errnoOf } from "./errno.ts";
import type { NetlinkChannel } from "./netlink-channel.ts";
import { attempt, attemptInBackground, closeNetlinkSocket, socketOn } from "./netlink-socket.ts";
import { changeLink } from "./rtnetlink/link.ts";

/** A kernel that refuses every message when it is sent. */
function refusingChannel(errno: number): NetlinkChannel & { readonly calls: string[] } {
  const calls: string[] = [];
  return {
    calls,
    send: () => errno,
    sendInBackground: async () => errno,
    receive: () => -errnoOf("EAGAIN"),
    enlarge: (bytes) => calls.push(`enlarge ${bytes}`),
    join: () => {},
    async *arrivals() {},
    port: () => 1,
    close: () => calls.push("close"),
  };
}

describe("a netlink socket", () => {
  test("throws what the kernel's end returns when a message cannot be sent", async () => {
    const channel = refusingChannel(errnoOf("ENOBUFS"));
    const socket = socketOn(channel, "route");
    const request = changeLink({ name: "eth7" }, { state: "up" });

    expect(() => attempt(socket, [request])).toThrow("ENOBUFS");
    await expect(attemptInBackground(socket, [request])).rejects.toThrow("ENOBUFS");
    closeNetlinkSocket(socket);
    expect(channel.calls).toEqual(["close"]);
  });

  test("enlarges the buffers before a message that does not fit, once", () => {
    const channel = refusingChannel(errnoOf("EPERM"));
    const socket = socketOn(channel, "route");
    const large = {
      action: "send much",
      type: 16,
      flags: 0,
      write: (writer: { raw(bytes: Uint8Array): void }) => writer.raw(new Uint8Array(200_000)),
    };
    for (const _ of [1, 2]) expect(() => attempt(socket, [large])).toThrow("EPERM");

    expect(channel.calls).toHaveLength(1);
  });
});
