/** One packet from one end to another on the real kernel: does it arrive? Many at once. */

import type { Host } from "../support/host.ts";
import { askTcpWithin, askUdpWithin, serveTcp, serveUdp } from "../support/namespace-sockets.ts";
import { patience as timesAsLong } from "../support/proof-size.ts";
import { sctpArrives } from "../support/sctp.ts";
import type { End } from "./policy-site.ts";

export interface Probe {
  readonly from: End;
  readonly to: End;
  readonly protocol: "tcp" | "udp" | "sctp" | "icmp";
  /** Of TCP, UDP and SCTP. */
  readonly port: number;
  readonly family: 4 | 6;
}

export type Outcome = "allow" | "deny";

/** A packet that is dropped is waited for this long; a row that should be allowed and is not, is tried again with patience. */
const SHORT_MILLISECONDS = 300 * timesAsLong;
const LONG_MILLISECONDS = 3_000 * timesAsLong;

/** Listens on these ports with TCP and UDP, both families. */
export async function serve({ netns, name }: End, ports: readonly number[]): Promise<readonly Disposable[]> {
  const tcp = ports.map((port) => serveTcp(netns, name, port));
  const udp = await Promise.all(ports.map((port) => serveUdp(netns, name, port)));
  return [...tcp, ...udp];
}

export async function outcomeOf(probe: Probe, expected: Outcome, host: Host): Promise<Outcome> {
  const first = await arrives(probe, SHORT_MILLISECONDS, host);
  const isLate = !first && expected === "allow";
  return first || (isLate && (await arrives(probe, LONG_MILLISECONDS, host))) ? "allow" : "deny";
}

async function arrives({ from, to, protocol, port, family }: Probe, patience: number, host: Host): Promise<boolean> {
  const address = to.addresses[family === 4 ? 0 : 1];
  switch (protocol) {
    case "tcp":
      return (await askTcpWithin(patience, from.netns, address, port)).startsWith(`${to.name} `);
    case "udp":
      return (await askUdpWithin(patience, from.netns, address, port)).startsWith(`${to.name} `);
    case "sctp":
      return sctpArrives({ from: from.netns, to: to.netns, target: address, port, patience });
    case "icmp":
      return pings(from, address, patience, host);
  }
}

async function pings(from: End, address: string, patience: number, host: Host): Promise<boolean> {
  const seconds = String(patience / 1000);
  const inside = from.name === "host" ? [] : ["nsenter", `--net=${insideHost(from.netns)}`];
  const { code } = await host.run([...inside, "ping", "-c", "1", "-W", seconds, address]);
  return code === 0;
}

/** The path of a namespace as processes of the host see it. */
function insideHost(netns: string): string {
  return netns.slice(netns.indexOf("/run/netns/"));
}
