import { describe, expect, test } from "bun:test";
import { attempt, closeNetlinkSocket } from "../netlink-socket.ts";
import { findLink, findLinkByIndex } from "./link.ts";
import { keepRouteSocket, returnRouteSocket, takeRouteSocket, withRouteSocket } from "./route-socket.ts";

const LOOPBACK = { name: "lo", index: 1 };

describe("takeRouteSocket()", () => {
  test("opens a socket for each, as long as none is kept", () => {
    const [one, other] = [takeRouteSocket(), takeRouteSocket()];
    expect(one.fd).not.toBe(other.fd);
    for (const socket of [one, other]) returnRouteSocket(socket);
    expect(() => findLink(one, "lo")).toThrow("EBADF");
  });

  test("gives everybody the one that is kept, and it stays open", () => {
    keepRouteSocket();
    const held = takeRouteSocket();
    withRouteSocket((socket) => expect(socket).toBe(held));
    returnRouteSocket(held);
    expect(findLink(held, "lo")).toMatchObject(LOOPBACK);
  });

  test("replaces one with an answer that nobody read; who holds it goes on with the new one", () => {
    const held = takeRouteSocket();
    const left = () =>
      attempt(held, [{ action: "ask", type: 18, flags: 0, write: (writer) => writer.raw(loopbackHeader()) }], () => {
        throw new RangeError("on the way");
      });
    expect(left).toThrow(RangeError);
    expect(held.isUnanswered).toBe(true);

    expect(takeRouteSocket()).toBe(held);
    expect(held.isUnanswered).toBe(false);
    expect(findLinkByIndex(held, 1)).toMatchObject(LOOPBACK);
  });

  test("replaces one that is dead, once somebody has found out", () => {
    const held = takeRouteSocket();
    closeNetlinkSocket(held);
    expect(() => findLink(held, "lo")).toThrow("EBADF");
    expect(withRouteSocket((socket) => findLink(socket, "lo"))).toMatchObject(LOOPBACK);
  });
});

function loopbackHeader(): Uint8Array {
  const header = new Uint8Array(16);
  header[4] = LOOPBACK.index;
  return header;
}
