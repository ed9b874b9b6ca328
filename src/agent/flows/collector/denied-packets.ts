/**
 * Packets that rules denied become records: one for each attempt to connect, however often its first packet is sent again.
 *
 * A rule reports its denied packets up to a limit, with the point and its comment; how many it denied in all is told by the agent,
 * and the difference is counted. Which rules accepted the packet at earlier points is not in the report, so a record has the
 * decision that denied it alone. Pure.
 */
import { serviceKey } from "../../../flows/collector-messages.ts";
import type { FlowEnd, FlowRecord } from "../../../flows/flow-record.ts";
import { formatAddress } from "../../../ip/address.ts";
import type { PacketEnd, PacketHead } from "../../../linux/packet-head.ts";
import { POINT_CODE, POINTS, type Point } from "../../../policy/point.ts";
import type { SeenFlow } from "../flow-sink.ts";
import { type EndNames, type NamedEnd, OUTSIDE } from "./end-names.ts";
import type { FlowIds } from "./follow-connections.ts";
import { directionOf } from "./rule-decisions.ts";

const POINT_OF: ReadonlyMap<string, Point> = new Map(POINTS.map((point) => [POINT_CODE[point], point]));
/** TCP sends its first packet again after 1, 2, 4, 8 and 16 seconds. */
const SAME_ATTEMPT_MILLISECONDS = 20_000;
const NAMES_MILLISECONDS = 700;
const SETTLED_MILLISECONDS = 2_500;
/** A packet that was denied is reported within this time. */
const REPORTED_MILLISECONDS = 500;
/** Followed at the same time. */
const MOST_ATTEMPTS = 20_000;
/** Longer than the agent takes between two looks at large tables: by then all reports of a comment are counted. */
const QUIET_MILLISECONDS = 120_000;

interface Attempt {
  readonly id: number;
  readonly head: PacketHead;
  readonly point: Point;
  readonly rule: string;
  readonly heardAt: number;
  readonly start: number;
  end: number;
  packets: number;
  bytes: number;
  suppressed: number;
  source: NamedEnd;
  destination: NamedEnd;
  isNamed: boolean;
  isHandedOn: boolean;
  isSettled: boolean;
  hasChanged: boolean;
}

/** Of the rules with one comment. */
interface Denials {
  /** Denied packets that the agent has told of and nobody has reported; below 0 if reports came first. */
  unreported: number;
  /** Of the reports, those since the agent told of this comment, and those between that and the time before. */
  fresh: number;
  recent: number;
  toldAt: number;
  usedAt: number;
  latest: Attempt | undefined;
}

export class DeniedPackets {
  readonly #attempts = new Map<string, Attempt>();
  readonly #denials = new Map<string, Denials>();
  #lost = 0;
  #namesUnknown = 0;

  constructor(
    private readonly node: string,
    private readonly names: EndNames,
    private readonly ids: FlowIds,
  ) {}

  /** `prefix`: of the rule, `PT COMMENT`. `time`: of the packet. */
  add(head: PacketHead, prefix: string, { now, time = now }: { readonly now: number; readonly time?: number }): void {
    const point = POINT_OF.get(prefix.slice(0, 2));
    if (point === undefined || prefix[2] !== " ") return;
    const rule = prefix.slice(3);
    const denials = this.#denialsOf(rule, now);
    denials.unreported -= 1;
    denials.fresh += 1;
    const key = keyOf(head, prefix);
    const known = this.#attempts.get(key);
    if (known !== undefined) {
      known.packets += 1;
      known.bytes += head.bytes;
      known.end = time;
      known.hasChanged = true;
      denials.latest = known;
      return;
    }
    if (this.#attempts.size >= MOST_ATTEMPTS) {
      this.#lost += 1;
      return;
    }
    const attempt: Attempt = {
      ...{ id: this.ids.next(), head, point, rule, heardAt: now, start: time, end: time },
      ...{ packets: 1, bytes: head.bytes, suppressed: 0, source: OUTSIDE, destination: OUTSIDE },
      ...{ isNamed: false, isHandedOn: false, isSettled: false, hasChanged: true },
    };
    this.#attempts.set(key, attempt);
    denials.latest = attempt;
    this.#name(attempt, now);
  }

  /** How many packets more than the last time the rules of each comment have denied; those without any are left out. */
  learnCounts(counts: readonly (readonly [comment: string, packets: number])[], now: number): void {
    for (const [rule, packets] of counts) {
      const denials = this.#denialsOf(rule, now);
      // Earlier reports were counted by then, or never will be: their rule was written again, or the agent counted from later on.
      denials.unreported = Math.max(denials.unreported, -denials.fresh - denials.recent) + packets;
      [denials.recent, denials.fresh] = [denials.fresh, 0];
      denials.toldAt = now;
    }
  }

  /** How many packets more than at the last call were denied and not reported; a report may be on its way for a moment. */
  takeSuppressed(now: number): number {
    let added = 0;
    for (const [rule, denials] of this.#denials) {
      if (now - denials.toldAt < REPORTED_MILLISECONDS) continue;
      const missing = Math.max(0, denials.unreported);
      denials.unreported -= missing;
      added += missing;
      const { latest } = denials;
      if (missing > 0 && latest !== undefined && this.#attempts.has(keyOfAttempt(latest))) {
        latest.suppressed += missing;
        latest.hasChanged = true;
      }
      if (now - denials.usedAt > QUIET_MILLISECONDS) this.#denials.delete(rule);
    }
    return added;
  }

  /** Comments of rules that are remembered. */
  get rulesKnown(): number {
    return this.#denials.size;
  }

  /** Packets that were reported and are in no record, since the last call: too many attempts at the same time. */
  takeLost(): number {
    const lost = this.#lost;
    this.#lost = 0;
    return lost;
  }

  /** The records that are new or have changed since the last call. */
  flush(now: number): readonly SeenFlow[] {
    const records: SeenFlow[] = [];
    for (const [key, attempt] of this.#attempts) {
      const age = now - attempt.heardAt;
      if (!attempt.isHandedOn && !attempt.isNamed) this.#name(attempt, now);
      if (!attempt.isHandedOn && !attempt.isNamed && age < NAMES_MILLISECONDS) continue;
      if (!attempt.isSettled && age >= SETTLED_MILLISECONDS) this.#settle(attempt, now);
      if (attempt.hasChanged) records.push(this.#handOn(attempt));
      if (now - attempt.end <= SAME_ATTEMPT_MILLISECONDS) continue;
      if (!attempt.isNamed) this.#namesUnknown += 1;
      this.#attempts.delete(key);
    }
    return records;
  }

  /** Records whose ends nobody has named, since the last call. */
  takeNamesUnknown(): number {
    const count = this.#namesUnknown;
    this.#namesUnknown = 0;
    return count;
  }

  #denialsOf(rule: string, now: number): Denials {
    const known = this.#denials.get(rule);
    if (known !== undefined) {
      known.usedAt = now;
      return known;
    }
    const added = { unreported: 0, fresh: 0, recent: 0, toldAt: 0, usedAt: now, latest: undefined };
    this.#denials.set(rule, added);
    return added;
  }

  #name(attempt: Attempt, now: number): void {
    const from = this.names.find(formatAddress(attempt.head.source.address), now);
    const to = this.#destination(attempt.head, now);
    attempt.source = from ?? attempt.source;
    attempt.destination = to ?? attempt.destination;
    attempt.isNamed = from !== undefined && to !== undefined;
  }

  /** The packet may not be translated yet: a rule of the workload itself judges after that. */
  #destination({ protocol, destination }: PacketHead, now: number): NamedEnd | undefined {
    const address = formatAddress(destination.address);
    const end = this.names.find(address, now);
    if (end?.shown.kind !== "outside" || destination.port === undefined) return end;
    const service = this.names.find(serviceKey(address, protocol, destination.port), now);
    return service?.shown.kind === "service" ? service : service && end;
  }

  #settle(attempt: Attempt, now: number): void {
    const { source, destination } = attempt;
    this.#name(attempt, now);
    attempt.isSettled = attempt.isNamed;
    if (source !== attempt.source || destination !== attempt.destination) attempt.hasChanged = true;
  }

  #handOn(attempt: Attempt): SeenFlow {
    attempt.hasChanged = false;
    attempt.isHandedOn = true;
    const { source, destination } = attempt;
    return {
      record: this.#recordOf(attempt),
      ...(source.endpoint === undefined ? {} : { source: source.endpoint }),
      ...(destination.endpoint === undefined ? {} : { destination: destination.endpoint }),
    };
  }

  #recordOf({
    id,
    head,
    point,
    rule,
    start,
    end,
    packets,
    bytes,
    suppressed,
    source,
    destination,
  }: Attempt): FlowRecord {
    const isEgress = directionOf(point) === "egress" || source.isLocal;
    const isIngress = directionOf(point) === "ingress" || destination.isLocal;
    return {
      id: this.ids.text(id),
      node: this.node,
      family: head.source.address.family,
      protocol: head.protocol,
      ...(head.icmp === undefined ? {} : { icmp: head.icmp }),
      source: endOf(source, head.source),
      destination: endOf(destination, head.destination),
      direction: isEgress && isIngress ? "both" : isEgress ? "egress" : "ingress",
      verdict: "denied",
      decisions: [{ point, verdict: "deny", rule }],
      state: "denied",
      start: Math.round(start),
      end: Math.round(end),
      sent: { packets, bytes },
      received: { packets: 0, bytes: 0 },
      ...(suppressed === 0 ? {} : { suppressed }),
    };
  }
}

function endOf({ shown }: NamedEnd, { address, port }: PacketEnd): FlowEnd {
  return { ...shown, address: formatAddress(address), ...(port === undefined ? {} : { port }) };
}

function keyOfAttempt({ head, point, rule }: Attempt): string {
  return keyOf(head, `${POINT_CODE[point]} ${rule}`);
}

function keyOf({ protocol, source, destination, icmp }: PacketHead, prefix: string): string {
  const end = ({ address, port }: PacketEnd) => `${formatAddress(address)} ${port ?? ""}`;
  const kind = icmp === undefined ? "" : `${icmp.type} ${icmp.code}`;
  return `${protocol} ${end(source)} ${end(destination)} ${kind} ${prefix}`;
}
