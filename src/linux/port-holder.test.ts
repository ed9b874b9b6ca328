import { describe, expect, test } from "bun:test";
import { isPortHeldBy, waitingSockets } from "./port-holder.ts";

const TABLE = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C001 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0000000000000000 100 0 0 10 0
`;

describe("waitingSockets()", () => {
  test("finds those that listen on the port, without connections and other ports", () => {
    expect(waitingSockets(TABLE, { protocol: "tcp", port: 8080 })).toEqual(["4711"]);
    expect(waitingSockets(TABLE, { protocol: "udp", port: 8080 })).toEqual([]);
    expect(waitingSockets("", { protocol: "tcp", port: 8080 })).toEqual([]);
  });
});

describe("isPortHeldBy()", () => {
  test("looks only at processes with the command line", () => {
    using server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const host = { protocol: "tcp", port: server.port } as const;

    expect(isPortHeldBy(host, () => true)).toBe(true);
    expect(isPortHeldBy(host, () => false)).toBe(false);
  });

  test("is false for a port on which nobody listens", () => {
    expect(isPortHeldBy({ protocol: "tcp", port: 1 }, () => true)).toBe(false);
  });
});
