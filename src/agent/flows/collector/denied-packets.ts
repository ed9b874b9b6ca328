/**
 * Packets that rules denied become records: one for each attempt to connect, however often its first packet is sent again.
 *
 * A rule reports its denied packets up to a limit, with the point and its comment. With the packet a kernel that can tell it reports the
 * connection, which ends with the packet: whom it asked for before a translation, and by its label which rules accepted it at
 * earlier points. From other kernels a record has what the packet says at the rule, and the decision that denied it alone.
 *
 * How many packets a rule denied in all is told by the agent, and the difference is counted. Pure.
 */
import { serviceKey } from "../../../flows/collector-messages.ts";
import type { FlowDecision, FlowEnd, FlowRecord } from "../../../flows/flow-record.ts";
import { type Family, formatAddress } from "../../../ip/address.ts";
import type { TrackedMessage } from "../../../linux/conntrack-message.ts";
import type { GroupPacket } from "../../../linux/log-group.ts";
import type { PacketHead } from "../../../linux/packet-head.ts";
import { POINT_CODE, POINTS, type Point } from "../../../policy/point.ts";
import type { SeenFlow } from "../flow-sink.ts";
import { hasPorts } from "./connection-record.ts";
import { type AddressTexts, type EndNames, type NamedEnd, OUTSIDE } from "./end-names.ts";
import type { FlowIds } from "./flow-ids.ts";
import { directionOf, type RuleDecisions } from "./rule-decisions.ts";

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

export interface DeniedPacket extends Pick<GroupPacket, "connection" | "time"> {
  readonly head: PacketHead;
  /** Of the rule, `PT COMMENT`. */
  readonly prefix: string;
}

export interface DeniedFacts {
  readonly names: EndNames;
  readonly rules: RuleDecisions;
  readonly texts: AddressTexts;
}

interface Place {
  readonly address: string;
  readonly port?: number;
}

/** Who sends to whom. */
interface Path {
  readonly family: Family;
  readonly protocol: number;
  readonly icmp?: PacketHead["icmp"];
  readonly source: Place;
  readonly destination: Place;
  /** Of a translated packet: where it would have arrived, and as whose. */
  readonly backend?: Place;
  readonly seenAs?: Place;
}

interface Attempt {
  readonly id: number;
  readonly path: Path;
  readonly point: Point;
  readonly rule: string;
  /** Of its connection. */
  readonly label: Uint32Array | undefined;
  readonly heardAt: number;
  readonly start: number;
  end: number;
  packets: number;
  bytes: number;
  suppressed: number;
  source: NamedEnd;
  destination: NamedEnd;
  backend: NamedEnd;
  /** At the points before the one that denied it. */
  earlier: readonly FlowDecision[];
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
    private readonly ids: FlowIds,
    private readonly facts: DeniedFacts,
  ) {}

  add({ head, prefix, connection, time }: DeniedPacket, now: number): void {
    const point = POINT_OF.get(prefix.slice(0, 2));
    if (point === undefined || prefix[2] !== " ") return;
    const rule = prefix.slice(3);
    const denials = this.#denialsOf(rule, now);
    denials.unreported -= 1;
    denials.fresh += 1;
    const path = connection === undefined ? pathOfPacket(head) : this.#pathOf(connection, head);
    const key = keyOf(path, prefix);
    const known = this.#attempts.get(key);
    if (known !== undefined) {
      known.packets += 1;
      known.bytes += head.bytes;
      known.end = time ?? now;
      known.hasChanged = true;
      denials.latest = known;
      return;
    }
    if (this.#attempts.size >= MOST_ATTEMPTS) {
      this.#lost += 1;
      return;
    }
    const attempt: Attempt = {
      ...{ id: this.ids.next(), path, point, rule, label: connection?.label, earlier: [] },
      ...{ heardAt: now, start: time ?? now, end: time ?? now, packets: 1, bytes: head.bytes, suppressed: 0 },
      ...{ source: OUTSIDE, destination: OUTSIDE, backend: OUTSIDE },
      ...{ isNamed: false, isHandedOn: false, isSettled: false, hasChanged: true },
    };
    this.#attempts.set(key, attempt);
    denials.latest = attempt;
    this.#name(attempt, now);
    this.#readLabel(attempt);
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
      if (Math.abs(now - denials.toldAt) < REPORTED_MILLISECONDS) continue;
      const missing = Math.max(0, denials.unreported);
      denials.unreported -= missing;
      added += missing;
      const { latest } = denials;
      if (missing > 0 && latest !== undefined && this.#attempts.has(keyOfAttempt(latest))) {
        latest.suppressed += missing;
        latest.hasChanged = true;
      }
      if (Math.abs(now - denials.usedAt) > QUIET_MILLISECONDS) this.#denials.delete(rule);
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
      // The clock may have been set back meanwhile.
      const age = Math.abs(now - attempt.heardAt);
      if (!attempt.isHandedOn && !attempt.isNamed) this.#name(attempt, now);
      if (!attempt.isHandedOn && !attempt.isNamed && age < NAMES_MILLISECONDS) continue;
      if (!attempt.isSettled && age >= SETTLED_MILLISECONDS) this.#settle(attempt, now);
      if (attempt.hasChanged) records.push(this.#handOn(attempt));
      if (Math.abs(now - attempt.end) <= SAME_ATTEMPT_MILLISECONDS) continue;
      if (!attempt.isNamed) this.#namesUnknown += 1;
      this.#attempts.delete(key);
    }
    return records;
  }

  /** As `flush`, also what waits for names: nothing follows. */
  flushLast(now: number): readonly SeenFlow[] {
    return [...this.#attempts.values()].flatMap((attempt) => {
      if (!attempt.isNamed) this.#name(attempt, now);
      return attempt.hasChanged ? [this.#handOn(attempt)] : [];
    });
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

  /** The tuple of the reply is that of the packet as far as it was translated, the other way round. */
  #pathOf({ family, original, reply }: TrackedMessage, { icmp }: PacketHead): Path {
    const { protocol } = original;
    const place = (words: Uint32Array, port: number): Place => {
      const address = this.facts.texts.of(family, words, 0);
      return hasPorts(protocol) ? { address, port } : { address };
    };
    const source = place(original.source, original.sourcePort);
    const destination = place(original.destination, original.destinationPort);
    const backend = place(reply.source, reply.sourcePort);
    const seenAs = place(reply.destination, reply.destinationPort);
    return {
      ...{ family, protocol, source, destination },
      ...(icmp === undefined ? {} : { icmp }),
      ...(isSamePlace(destination, backend) ? {} : { backend }),
      ...(isSamePlace(source, seenAs) ? {} : { seenAs }),
    };
  }

  #name(attempt: Attempt, now: number): void {
    const { names } = this.facts;
    const { source, backend } = attempt.path;
    const from = names.find(source.address, now);
    const to = this.#destination(attempt.path, now);
    const arrived = backend === undefined ? to : names.find(backend.address, now);
    attempt.source = from ?? attempt.source;
    attempt.destination = to ?? attempt.destination;
    attempt.backend = arrived ?? attempt.backend;
    attempt.isNamed = from !== undefined && to !== undefined && arrived !== undefined;
  }

  /** The packet may not be translated yet, or nobody knows: a rule of the workload itself judges after that. */
  #destination({ protocol, destination, backend }: Path, now: number): NamedEnd | undefined {
    const { names } = this.facts;
    const { address, port } = destination;
    const end = names.find(address, now);
    if (port === undefined || (backend === undefined && end?.shown.kind !== "outside")) return end;
    const service = names.find(serviceKey(address, protocol, port), now);
    return service?.shown.kind === "service" ? service : service && end;
  }

  /** Of a packet that is sent again, the label may have what rules of later points wrote before they were changed. */
  #readLabel(attempt: Attempt): void {
    if (attempt.label === undefined) return;
    const { decisions } = this.facts.rules.of(attempt.label);
    attempt.earlier = decisions.filter(({ point }) => POINTS.indexOf(point) < POINTS.indexOf(attempt.point));
  }

  #settle(attempt: Attempt, now: number): void {
    const { source, destination, backend, earlier } = attempt;
    this.#name(attempt, now);
    // The agent tells what a number stands for before a rule writes it, but the packet may be read first.
    if (isIncomplete(earlier)) this.#readLabel(attempt);
    attempt.isSettled = attempt.isNamed;
    const isSame = source === attempt.source && destination === attempt.destination && backend === attempt.backend;
    if (!isSame || isIncomplete(earlier) !== isIncomplete(attempt.earlier)) attempt.hasChanged = true;
  }

  #handOn(attempt: Attempt): SeenFlow {
    attempt.hasChanged = false;
    attempt.isHandedOn = true;
    const { source, backend } = attempt;
    return {
      record: this.#recordOf(attempt),
      ...(source.endpoint === undefined ? {} : { source: source.endpoint }),
      ...(backend.endpoint === undefined ? {} : { destination: backend.endpoint }),
    };
  }

  #recordOf(attempt: Attempt): FlowRecord {
    const { path, point, rule, earlier, source, destination, backend } = attempt;
    const directions = [...earlier.map((decision) => directionOf(decision.point)), directionOf(point)];
    const isEgress = directions.includes("egress") || source.isLocal;
    const isIngress = directions.includes("ingress") || backend.isLocal;
    return {
      id: this.ids.text(attempt.id),
      node: this.node,
      family: path.family,
      protocol: path.protocol,
      ...(path.icmp === undefined ? {} : { icmp: path.icmp }),
      source: endOf(source, path.source),
      destination: endOf(destination, path.destination),
      ...(path.backend === undefined ? {} : { backend: endOf(backend, path.backend) }),
      ...(path.seenAs === undefined ? {} : { seenAs: path.seenAs }),
      direction: isEgress && isIngress ? "both" : isEgress ? "egress" : "ingress",
      verdict: "denied",
      decisions: [...earlier, { point, verdict: "deny", rule }],
      state: "denied",
      start: Math.round(attempt.start),
      end: Math.round(attempt.end),
      sent: { packets: attempt.packets, bytes: attempt.bytes },
      received: { packets: 0, bytes: 0 },
      ...(attempt.suppressed === 0 ? {} : { suppressed: attempt.suppressed }),
    };
  }
}

function isIncomplete(decisions: readonly FlowDecision[]): boolean {
  return decisions.some(({ unknown }) => unknown === "rule forgotten");
}

function pathOfPacket({ protocol, icmp, source, destination }: PacketHead): Path {
  const place = ({ address, port }: PacketHead["source"]): Place => ({
    address: formatAddress(address),
    ...(port === undefined ? {} : { port }),
  });
  return {
    ...{ family: source.address.family, protocol, source: place(source), destination: place(destination) },
    ...(icmp === undefined ? {} : { icmp }),
  };
}

function endOf({ shown }: NamedEnd, place: Place): FlowEnd {
  return { ...shown, ...place };
}

function isSamePlace(one: Place, other: Place): boolean {
  return one.address === other.address && one.port === other.port;
}

function keyOfAttempt({ path, point, rule }: Attempt): string {
  return keyOf(path, `${POINT_CODE[point]} ${rule}`);
}

function keyOf({ protocol, source, destination, backend = destination, icmp }: Path, prefix: string): string {
  const end = ({ address, port }: Place) => `${address} ${port ?? ""}`;
  const kind = icmp === undefined ? "" : `${icmp.type} ${icmp.code}`;
  return `${protocol} ${end(source)} ${end(destination)} ${end(backend)} ${kind} ${prefix}`;
}
