import { expect, test } from "bun:test";
import { connect } from "node:net";
import { type Address, formatAddress } from "../../ip/address.ts";
import { PROBE_PORT } from "../../model/probe-port.ts";
import { ownTunnelProbes } from "./probe-path.ts";

/** Of this process, so that several runs of the test have the port. */
const TUNNEL: Address = { family: 4, value: 0x7f000000n + BigInt(process.pid % 0xfffff) * 8n + 8n };
const ownAddress = (last: bigint): Address => ({ family: 4, value: TUNNEL.value + last });
const [PEER, POD] = [ownAddress(1n), ownAddress(2n)];

/** What the agent sends to somebody who sends as much as a probe does; "" if it only closes. */
async function replyTo(from: Address): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const place = { host: formatAddress(TUNNEL), port: PROBE_PORT };
  const socket = connect({ ...place, localAddress: formatAddress(from) });
  let reply = "";
  socket.on("connect", () => socket.write(new Uint8Array(64 * 1024)));
  socket.on("data", (bytes) => {
    reply += bytes.toString("hex");
  });
  socket.on("error", () => resolve(reply));
  socket.on("close", () => resolve(reply));
  return promise;
}

test("an agent answers other nodes by TCP, and not pods, which reach the port too", async () => {
  const ending = new AbortController();
  const isPeer = ({ value }: Address) => value === PEER.value;
  const wait = async (milliseconds: number) => Bun.sleep(milliseconds);
  const answering = ownTunnelProbes.answer({ address: TUNNEL, isPeer }, wait, ending.signal);
  try {
    expect([await replyTo(PEER), await replyTo(POD)]).toEqual(["01", ""]);
  } finally {
    ending.abort();
    await answering;
  }
});
