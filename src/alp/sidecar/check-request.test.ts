import { describe, expect, test } from "bun:test";
import { checkRequest } from "../../../test/support/check-request.ts";
import { delimited, message } from "../../grpc/protobuf.ts";
import { parseAddress } from "../../ip/address.ts";
import { decodeCheckRequest } from "./check-request.ts";

describe("decodeCheckRequest()", () => {
  test("reads addresses, ports, principal, method and path", () => {
    const asked = checkRequest({
      source: "fd00::1",
      sourcePort: 40_001,
      principal: "spiffe://cluster.local/ns/shop/sa/web",
      destinationPort: 8443,
      http: { method: "GET", path: "/größe?a=b" },
    });

    expect(decodeCheckRequest(asked)).toEqual({
      source: parseAddress("fd00::1") ?? { family: 6, value: 0n },
      sourcePort: 40_001,
      principal: "spiffe://cluster.local/ns/shop/sa/web",
      destinationPort: 8443,
      http: { method: "GET", path: "/größe?a=b" },
    });
  });

  test("has no principal for a client without a certificate, and no HTTP for a TCP connection", () => {
    const decoded = decodeCheckRequest(checkRequest({ principal: "" }));

    expect(Object.keys(decoded).sort()).toEqual(["destinationPort", "source", "sourcePort"]);
  });

  test("an HTTP request without a path, as CONNECT, is still HTTP", () => {
    const asked = checkRequest({ http: { method: "CONNECT", path: "" } });

    expect(decodeCheckRequest(asked).http).toEqual({ method: "CONNECT", path: "" });
  });

  test.each([
    ["nothing", message()],
    ["no peers", delimited(1, "")],
    ["no destination", delimited(1, delimited(1, ""))],
    ["a unix socket as the source", checkRequest({ source: "/run/x.sock" })],
    ["a host name as the source", checkRequest({ source: "localhost" })],
    ["UDP", checkRequest({ isUdp: true })],
    ["a message that is cut off", checkRequest({}).subarray(0, -1)],
  ])("throws an error for %s", (_, bytes) => {
    expect(() => decodeCheckRequest(bytes)).toThrow(Error);
  });
});
