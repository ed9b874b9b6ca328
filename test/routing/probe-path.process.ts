/** What an agent does with a tunnel, in its namespace: `answer ADDRESS`, or `probe ADDRESS MTU`, which prints the result. */
import { setTimeout as sleep } from "node:timers/promises";
import { ownTunnelProbes } from "../../src/agent/node-routes/probe-path.ts";
import { address } from "../support/ip.ts";

const [role, text = "", mtu] = process.argv.slice(2);
const place = address(text);
const wait = (milliseconds: number) => sleep(milliseconds);
const { signal } = new AbortController();
if (role === "answer") {
  const answering = ownTunnelProbes.answer({ address: place, isPeer: () => true }, wait, signal);
  process.stdout.write("ready\n");
  await answering;
} else {
  const path = { node: "there", address: place, remote: place, mtu: Number(mtu) };
  process.stdout.write(`${JSON.stringify(await ownTunnelProbes.probe(path, wait, signal))}\n`);
}
