/** Random connections between the ends of a site, by address, Service or published port. Pure. */

import { END_NAMES, type FlowSite, NODE_PORTS, SERVICE } from "./flow-site.ts";
import { pickOf, type Random } from "./random-policies.ts";
import { ANSWERING_PORTS, type Attempt, CLOSED_PORT, DROPPED_PORT, SILENT_PORT } from "./traffic.ts";

const PUBLISHED_PORT = 8080;
const SERVICE_PORTS = [1000, 1001] as const;

export function randomAttempts(random: Random, site: FlowSite, count: number): readonly Attempt[] {
  return Array.from({ length: count }, () => randomAttempt(random, site));
}

function randomAttempt(random: Random, site: FlowSite): Attempt {
  const pick = <Value>(...values: readonly Value[]) => pickOf(random, values);
  const family = pick(4, 4, 6) as 4 | 6;
  const from = pick(...END_NAMES, "host");
  const kind = pick("end", "end", "end", "end", "end", "service", "published", "node port");
  const protocol = kind === "end" ? pick("tcp", "tcp", "tcp", "udp", "udp", "icmp") : pick("tcp", "udp");
  const addressOf = (name: string) => site.end(name).addresses[family === 4 ? 0 : 1];
  const others = [...END_NAMES, "host"].filter((name) => name !== from);
  const ofEnd = [
    ...ANSWERING_PORTS,
    ...ANSWERING_PORTS,
    CLOSED_PORT,
    DROPPED_PORT,
    ...(protocol === "udp" ? [SILENT_PORT] : []),
  ];
  const target = {
    end: () => ({ address: addressOf(pick(...others)), port: protocol === "icmp" ? 0 : pick(...ofEnd) }),
    service: () => ({ address: SERVICE[family], port: pick(...SERVICE_PORTS) }),
    // What the host sends to its own published port stays on it.
    // Nobody listens there if it is not a port of a Service.
    "node port": () => ({ address: addressOf("host"), port: pick(...NODE_PORTS) }),
    published: () => ({ address: addressOf("host"), port: PUBLISHED_PORT }),
  }[kind]();
  const size = () => pick(0, 1, Math.floor(random() * 2_000), Math.floor(random() * 60_000));
  return { from: site.end(from), protocol, ...target, up: size(), down: size() };
}
