import { describe, expect, test } from "bun:test";
import { createSocket } from "node:dgram";
import { isPortInUse } from "./port-in-use.ts";

const LOOPBACK = { family: 4, value: 0x7f000001n } as const;

describe("isPortInUse()", () => {
  test.each([false, true])("detects a UDP socket, whether it shares its port (%p) or not", async (reuseAddr) => {
    const socket = createSocket({ type: "udp4", reuseAddr });
    await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
    const { port } = socket.address();

    expect(isPortInUse("udp", LOOPBACK, port)).toBe(true);
    expect(isPortInUse("udp", { family: 4, value: 0n }, port)).toBe(true);
    socket.close();
  });
});
