/** Connections between two pods at a rate: whole ones from one thread, or first packets that nobody answers. */
import { join } from "node:path";
import { insideNetns } from "../../test/support/namespace-sockets.ts";
import { connectAndClose, type Listener, listenAt } from "./blocking-sockets.ts";
import { type FlowSite, SCANNED_PORTS, SERVER_PORT } from "./flow-site.ts";

const STEP_MILLISECONDS = 10;
const FLOOD = join(import.meta.dir, "../../test/flows/syn-flood.process.ts");

export interface Load {
  readonly title: string;
  readonly perSecond: number;
  /** Returns how many it has made in this time. */
  run(site: FlowSite, seconds: number): Promise<number>;
}

/** Each is opened, accepted, and reset. */
export function wholeConnections(perSecond: number): Load {
  return { title: "whole connections", perSecond, run: (site, seconds) => connectAtRate(site, perSecond, seconds) };
}

/** A scan of many ports: each packet would begin another connection. */
export function firstPackets(perSecond: number): Load {
  return { title: "first packets", perSecond, run: (site, seconds) => scan(site, perSecond, seconds) };
}

export function listenInServer({ server }: FlowSite): Listener {
  return insideNetns(server.netns, () => listenAt(SERVER_PORT));
}

/** One after another without a pause. Returns the microseconds of each. */
export function connectMany({ client, server }: FlowSite, listener: Listener, count: number): readonly number[] {
  const to = { address: server.addresses[0], port: SERVER_PORT };
  return insideNetns(client.netns, () => Array.from({ length: count }, () => connectAndClose(to, listener)));
}

async function connectAtRate(site: FlowSite, perSecond: number, seconds: number): Promise<number> {
  using listener = listenInServer(site);
  const started = performance.now();
  const limit = seconds * 1_000;
  let made = 0;
  for (let now = 0; now < limit; now = performance.now() - started) {
    const due = Math.min(
      Math.floor((now * perSecond) / 1_000) - made,
      Math.ceil((perSecond * STEP_MILLISECONDS) / 250),
    );
    if (due > 0) connectMany(site, listener, due);
    made += Math.max(due, 0);
    await Bun.sleep(STEP_MILLISECONDS / 2);
  }
  return made;
}

async function scan({ client, server }: FlowSite, perSecond: number, seconds: number): Promise<number> {
  const ends = [client.addresses[0], server.addresses[0]];
  const numbers = [perSecond, seconds * 1_000, SCANNED_PORTS.first, SCANNED_PORTS.count].map(String);
  const command = ["nsenter", `--net=${client.netns}`, process.execPath, FLOOD, ...ends, ...numbers];
  const sender = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
  const text = await new Response(sender.stdout).text();
  return Number(/(\d+) in /.exec(text)?.[1] ?? 0);
}
