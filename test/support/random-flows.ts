/** Records of flows, as random as those of a small cluster: connections begin, are updated and end; packets are denied. */
import type { FlowEnd, FlowRecord } from "../../src/flows/flow-record.ts";

export interface FlowStream {
  /** The next change, at this time. */
  next(now: number): FlowRecord;
}

function tried(verdict: "allowed" | "denied", rule: string): NonNullable<FlowRecord["staged"]> {
  const decision = verdict === "denied" ? "deny" : "allow";
  return { verdict, decisions: [{ point: "workload ingress", verdict: decision, rule }] };
}

/** A generator with a seed: the same numbers each time. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const NAMESPACES = ["shop", "data", "web-front", "default"];
const RULES = ["shop/web ingress 0", "data/knp.default.db ingress 2", "lockdown egress 1", "profile ingress"];

export function flowStream(node: string, random: () => number): FlowStream {
  const open: FlowRecord[] = [];
  let count = 0;
  const pick = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)] as Value;
  const below = (limit: number) => Math.floor(random() * limit);
  const end = (port: number): FlowEnd => {
    const number = below(60);
    const address = random() < 0.2 ? `2001:db8::${(number + 1).toString(16)}` : `10.1.${below(3)}.${number}`;
    const kind = pick(["pod", "pod", "pod", "host", "outside", "network set"] as const);
    if (kind === "outside") return { kind, address, port };
    if (kind === "host") return { kind, address, port, name: `node-${number % 3}` };
    if (kind === "network set") return { kind, address, port, name: `partners-${number % 4}` };
    const app = `app-${number % 7}`;
    const owner = { kind: "Deployment", name: app };
    const labels = { app, tier: pick(["front", "back"]) };
    return { kind, address, port, namespace: pick(NAMESPACES), name: `${app}-${number}`, owner, labels, node };
  };
  const begin = (now: number): FlowRecord => {
    const isDenied = random() < 0.1;
    const isService = random() < 0.3;
    const rule = pick(RULES);
    const target = end(pick([80, 443, 5432]));
    const service: FlowEnd = { kind: "service", address: "10.96.0.9", port: 8080, namespace: "shop", name: "front" };
    count += 1;
    return {
      ...{ id: `${node}-${count.toString(36)}`, node, family: 4, protocol: pick([6, 17]) },
      ...{ source: end(30_000 + below(1_000)), destination: isService ? service : target },
      ...(isService ? { backend: target } : {}),
      ...(random() < 0.1 ? { seenAs: { address: "192.0.2.1", port: below(60_000) } } : {}),
      direction: pick(["ingress", "egress", "both"] as const),
      verdict: isDenied ? "denied" : random() < 0.1 ? "unknown" : "allowed",
      decisions: [{ point: "workload ingress", verdict: isDenied ? "deny" : "allow", rule }],
      ...(random() < 0.3 ? { staged: tried(pick(["allowed", "denied"] as const), pick(RULES)) } : {}),
      ...{ state: isDenied ? "denied" : "open", start: now - below(2_000), end: now },
      sent: { packets: 1, bytes: 40 + below(100) },
      received: { packets: 0, bytes: 0 },
    };
  };
  return {
    next(now) {
      const former = random() < 0.6 ? open[below(open.length)] : undefined;
      if (former === undefined) {
        const record = begin(now);
        if (record.state === "open") open.push(record);
        return record;
      }
      const record: FlowRecord = {
        ...former,
        ...{ state: random() < 0.7 ? "ended" : "open", end: now },
        sent: { packets: former.sent.packets + below(10), bytes: former.sent.bytes + below(10_000) },
        received: { packets: former.received.packets + below(10), bytes: former.received.bytes + below(10_000) },
      };
      const place = open.indexOf(former);
      if (record.state === "open") open[place] = record;
      else open.splice(place, 1);
      return record;
    },
  };
}
