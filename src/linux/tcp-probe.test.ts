import { expect, test } from "bun:test";
import { parseAddress } from "../ip/address.ts";
import { probePacket, type TcpEnd } from "./tcp-probe.ts";

function end(text: string, port: number): TcpEnd {
  const address = parseAddress(text);
  if (address === undefined) throw new Error(`not an address: ${text}`);
  return { address, port };
}

test("probePacket() is a SYN of the client with a right checksum, in the name of the other end", () => {
  expect(probePacket(end("10.0.0.1", 80), end("10.0.0.2", 40_000), "client").toHex()).toBe(
    "4500002800000000400600000a0000010a000002" + "00509c40000000010000000050020000ff4e0000",
  );
  expect(probePacket(end("fd00::1", 80), end("fd00::2", 40_000), "client").toHex()).toBe(
    "6000000000140640fd000000000000000000000000000001fd000000000000000000000000000002" +
      "00509c40000000010000000050020000194d0000",
  );
});

test("probePacket() of the server is a SYN with an ACK that acknowledges nothing", () => {
  expect(probePacket(end("10.0.0.1", 80), end("10.0.0.2", 40_000), "server").toHex()).toBe(
    "4500002800000000400600000a0000010a000002" + "00509c40000000010000000050120000ff3e0000",
  );
});
