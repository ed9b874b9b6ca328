import { describe, expect, test } from "bun:test";
import { type NetlinkSocket, ownSockets } from "../netlink-socket.ts";
import { findLink } from "./link.ts";
import { withRouteSocket } from "./route-socket.ts";

describe("withRouteSocket()", () => {
  test("calls the work with a socket to the host's links, and closes it afterwards", () => {
    const opened: NetlinkSocket[] = [];
    const link = withRouteSocket(ownSockets, (socket) => {
      opened.push(socket);
      return findLink(socket, "lo");
    });

    expect(link).toMatchObject({ name: "lo", index: 1 });
    for (const socket of opened) expect(() => findLink(socket, "lo")).toThrow("EBADF");
  });
});
