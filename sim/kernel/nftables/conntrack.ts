/**
 * The connections that the kernel of a namespace tracks, and what the product asks about them: lists, and deletions by a
 * filter or of one entry. Without NAT, ICMP and the state machine of TCP: an entry is new until a reply is seen.
 */
import { type Address, addressBytes, addressFromBytes, type Family, isSameAddress } from "../../../src/ip/address.ts";
import type { AttributeCursor, MessageCursor } from "../../../src/linux/netlink/message-reader.ts";
import type { MessageWriter } from "../../../src/linux/netlink/message-writer.ts";
import { FLAG } from "../../../src/linux/netlink/wire.ts";
import type { Packet } from "../../../src/policy/judge/packet.ts";
import type { Outbox } from "./outbox.ts";
import { Refused } from "./refused.ts";

/** What tells connections apart, in one direction. */
export interface Tuple {
  readonly source: Address;
  readonly destination: Address;
  readonly protocol: number;
  readonly sourcePort: number;
  readonly destinationPort: number;
}

export interface TrackedEntry {
  /** Of its first packet. */
  readonly original: Tuple;
  isReplied: boolean;
  /** In virtual milliseconds. */
  expiresAt: number;
}

const TCP = 6;
const SECOND = 1_000;
/** As a new kernel has them. That of a UDP stream counts from the first reply, not two seconds later. */
const TIMEOUT = {
  udp: { new: 30 * SECOND, established: 120 * SECOND },
  tcp: { new: 120 * SECOND, established: 432_000 * SECOND },
} as const;

export class Connections {
  /** How often an entry was made or deleted. One whose time is over is not counted. */
  changes = 0;
  private readonly entries = new Set<TrackedEntry>();

  constructor(private readonly now: () => number) {}

  /** Those whose time is not over, the oldest first. */
  list(): readonly TrackedEntry[] {
    const now = this.now();
    for (const entry of this.entries) if (entry.expiresAt <= now) this.entries.delete(entry);
    return [...this.entries];
  }

  /** What rules see of such a packet (`ct state`). */
  stateOf(packet: Packet): "new" | "established" {
    const tuple = tupleOf(packet);
    const entry = tuple && this.find(tuple);
    return entry && (entry.isReplied || !isSameTuple(entry.original, tuple)) ? "established" : "new";
  }

  /** The packet has passed all rules of the host. */
  track(packet: Packet): void {
    const original = tupleOf(packet);
    if (original === undefined) return;
    const found = this.find(original);
    const entry = found ?? { original, isReplied: false, expiresAt: 0 };
    if (found === undefined) {
      this.changes += 1;
      this.entries.add(entry);
    }
    entry.isReplied ||= !isSameTuple(entry.original, original);
    const timeouts = original.protocol === TCP ? TIMEOUT.tcp : TIMEOUT.udp;
    entry.expiresAt = this.now() + timeouts[entry.isReplied ? "established" : "new"];
  }

  /** In either direction. */
  find(tuple: Tuple): TrackedEntry | undefined {
    return this.list().find(({ original }) => isSameTuple(original, tuple) || isSameTuple(inverse(original), tuple));
  }

  remove(entry: TrackedEntry): void {
    if (this.entries.delete(entry)) this.changes += 1;
  }
}

/** `undefined` if it has no ports. */
function tupleOf({ source, destination, protocol, sourcePort, destinationPort }: Packet): Tuple | undefined {
  if (sourcePort === undefined || destinationPort === undefined) return undefined;
  return { source, destination, protocol, sourcePort, destinationPort };
}

/** Of the replies. */
export function inverse({ source, destination, protocol, sourcePort, destinationPort }: Tuple): Tuple {
  return {
    ...{ source: destination, destination: source, protocol },
    ...{ sourcePort: destinationPort, destinationPort: sourcePort },
  };
}

function isSameTuple(left: Tuple, right: Tuple): boolean {
  return (
    left.protocol === right.protocol &&
    left.sourcePort === right.sourcePort &&
    left.destinationPort === right.destinationPort &&
    isSameAddress(left.source, right.source) &&
    isSameAddress(left.destination, right.destination)
  );
}

export const CONNTRACK = 1 << 8;
const MESSAGE = { entry: CONNTRACK, list: CONNTRACK | 1, remove: CONNTRACK | 2 } as const;
const HEADER_LENGTH = 4;
const FAMILY_NUMBER = { 4: 2, 6: 10 } as const;
const ATTRIBUTE = { original: 1, reply: 2, filter: 25 } as const;
const TUPLE = { ip: 1, protocol: 2 } as const;
const FIRST_ADDRESS = { 4: 1, 6: 3 } as const;
const PROTOCOL = { number: 1, sourcePort: 2, destinationPort: 3 } as const;
const FILTER = { original: 1, reply: 2 } as const;
const FILTER_FLAG = { source: 1, destination: 2, protocol: 8, sourcePort: 16, destinationPort: 32 } as const;
const ALL_FIELDS = 0xff;

export function answerConntrack(connections: Connections, message: MessageCursor, outbox: Outbox): void {
  const isList = (message.flags & FLAG.dump) === FLAG.dump;
  if (message.type !== (isList ? MESSAGE.list : MESSAGE.remove)) throw new Refused("EOPNOTSUPP");
  const family = message.view.getUint8(message.start);
  const isOfFamily = ({ original: { source } }: TrackedEntry) =>
    family === 0 || FAMILY_NUMBER[source.family] === family;
  if (isList) {
    const head = { type: MESSAGE.entry, flags: FLAG.multipart, sequence: message.sequence };
    for (const entry of connections.list().filter(isOfFamily)) outbox.put(head, (writer) => writeEntry(writer, entry));
    return;
  }
  const { original = {}, reply = {}, filter } = readAsked(message);
  if (filter === undefined) {
    const [found] = connections.list().filter((entry) => matches(entry.original, original, ALL_FIELDS));
    // One entry must exist; a filter may match none.
    if (found === undefined) throw new Refused("ENOENT");
    connections.remove(found);
    return;
  }
  // With version 0 the kernel ignores the family.
  const isJudged = message.view.getUint8(message.start + 1) === 0 ? () => true : isOfFamily;
  for (const entry of connections.list().filter(isJudged)) {
    const isWanted =
      matches(entry.original, original, filter.original) && matches(inverse(entry.original), reply, filter.reply);
    if (isWanted) connections.remove(entry);
  }
}

function writeEntry(writer: MessageWriter, { original }: TrackedEntry): void {
  writer.raw(Uint8Array.of(FAMILY_NUMBER[original.source.family], 0, 0, 0));
  writeTuple(writer, ATTRIBUTE.original, original);
  writeTuple(writer, ATTRIBUTE.reply, inverse(original));
}

function writeTuple(writer: MessageWriter, type: number, tuple: Tuple): void {
  const first = FIRST_ADDRESS[tuple.source.family];
  const whole = writer.open(type);
  const addresses = writer.open(TUPLE.ip);
  writer.bytes(first, addressBytes(tuple.source));
  writer.bytes(first + 1, addressBytes(tuple.destination));
  writer.close(addresses);
  const numbers = writer.open(TUPLE.protocol);
  writer.u8(PROTOCOL.number, tuple.protocol);
  writer.u16Big(PROTOCOL.sourcePort, tuple.sourcePort);
  writer.u16Big(PROTOCOL.destinationPort, tuple.destinationPort);
  writer.close(numbers);
  writer.close(whole);
}

interface Asked {
  original?: Partial<Tuple>;
  reply?: Partial<Tuple>;
  /** Which fields count. */
  filter?: { original: number; reply: number };
}

function readAsked(message: MessageCursor): Asked {
  const asked: Asked = {};
  const attributes = message.attributes(HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type === ATTRIBUTE.original) asked.original = readTuple(attributes.nested());
    if (attributes.type === ATTRIBUTE.reply) asked.reply = readTuple(attributes.nested());
    if (attributes.type === ATTRIBUTE.filter) asked.filter = readFilter(attributes.nested());
  }
  return asked;
}

function readFilter(attributes: AttributeCursor): NonNullable<Asked["filter"]> {
  const filter = { original: 0, reply: 0 };
  while (attributes.next()) {
    if (attributes.type === FILTER.original) filter.original = attributes.u32();
    if (attributes.type === FILTER.reply) filter.reply = attributes.u32();
  }
  return filter;
}

export function readTuple(attributes: AttributeCursor): Partial<Tuple> {
  const tuple: { -readonly [Field in keyof Tuple]?: Tuple[Field] } = {};
  const addressIn = (bytes: Uint8Array, field: "source" | "destination") => {
    const address = addressFromBytes(bytes);
    if (address !== undefined) tuple[field] = address;
  };
  while (attributes.next()) {
    const inner = attributes.nested();
    while (inner.next()) {
      if (attributes.type === TUPLE.ip) addressIn(inner.copy(), isSource(inner.type) ? "source" : "destination");
      if (attributes.type !== TUPLE.protocol) continue;
      if (inner.type === PROTOCOL.number) tuple.protocol = inner.u8();
      if (inner.type === PROTOCOL.sourcePort) tuple.sourcePort = inner.u16Big();
      if (inner.type === PROTOCOL.destinationPort) tuple.destinationPort = inner.u16Big();
    }
  }
  return tuple;
}

function isSource(type: number): boolean {
  const families: readonly Family[] = [4, 6];
  return families.some((family) => FIRST_ADDRESS[family] === type);
}

/** Whether the fields that count are the same. */
function matches(tuple: Tuple, asked: Partial<Tuple>, flags: number): boolean {
  const counts = (field: keyof typeof FILTER_FLAG) => (flags & FILTER_FLAG[field]) !== 0;
  const hasAddress = (field: "source" | "destination") =>
    !counts(field) || (asked[field] !== undefined && isSameAddress(tuple[field], asked[field]));
  const hasNumber = (field: "protocol" | "sourcePort" | "destinationPort") =>
    !counts(field) || tuple[field] === asked[field];
  return (
    hasAddress("source") &&
    hasAddress("destination") &&
    hasNumber("protocol") &&
    hasNumber("sourcePort") &&
    hasNumber("destinationPort")
  );
}
