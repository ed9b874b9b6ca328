/**
 * Reads what the kernel says about one tracked connection: the event that it began or ended, its entry in the table, or what comes
 * with a packet of it that a rule logs.
 *
 * A busy host sends 100,000 of these in a second, so nothing is allocated: one `TrackedMessage` is filled again and again. An
 * attribute that is absent leaves its fields at zero; one that does not fit, or is too short for its value, throws. Pure.
 */
import { PluginError } from "../errors.ts";
import type { Family } from "../ip/address.ts";
import { ALIGNMENT, ATTRIBUTE_TYPE_MASK, aligned } from "./netlink/wire.ts";

/** `struct nfgenmsg`: family, version, resource. */
const HEADER_LENGTH = 4;
const IPV6_FAMILY = 10;
const ATTRIBUTE = {
  original: 1,
  reply: 2,
  status: 3,
  originalCounters: 9,
  replyCounters: 10,
  id: 12,
  master: 14,
  zone: 18,
  timestamp: 20,
  labels: 22,
} as const;
const TUPLE = { ip: 1, protocol: 2, zone: 3 } as const;
const IP = { ipv4Source: 1, ipv4Destination: 2, ipv6Source: 3, ipv6Destination: 4 } as const;
const PROTOCOL = {
  number: 1,
  sourcePort: 2,
  destinationPort: 3,
  icmpId: 4,
  icmpType: 5,
  icmpCode: 6,
  icmpv6Id: 7,
  icmpv6Type: 8,
  icmpv6Code: 9,
} as const;
const COUNTERS = { packets: 1, bytes: 2 } as const;
const TIMESTAMP = { start: 1, stop: 2 } as const;

const ADDRESS_WORDS = 4;
const LABEL_WORDS = 4;
const TWO_TO_32 = 2 ** 32;
/** In a millisecond. */
const NANOSECONDS = 1e6;

/** The kernel's `enum ip_conntrack_status`. */
export const STATUS = { expected: 1, seenReply: 2, sourceNat: 16, destinationNat: 32, dying: 512 } as const;

/** Who sends to whom, as the packets of one direction say. Addresses are words in the order of the network; IPv4 has one. */
export class TrackedTuple {
  readonly source = new Uint32Array(ADDRESS_WORDS);
  readonly destination = new Uint32Array(ADDRESS_WORDS);
  protocol = 0;
  /** Of ICMP, which has no ports, its identifier. */
  sourcePort = 0;
  /** Of ICMP the type and the code: type × 256 + code. */
  destinationPort = 0;
  hasZone = false;

  clear(): void {
    this.source.fill(0);
    this.destination.fill(0);
    this.protocol = 0;
    this.sourcePort = 0;
    this.destinationPort = 0;
    this.hasZone = false;
  }
}

export class TrackedMessage {
  family: Family = 4;
  /** The kernel's: a hash. Two connections of a large table may have the same one. */
  id = 0;
  status = 0;
  readonly original = new TrackedTuple();
  readonly reply = new TrackedTuple();
  /** Of the connection because of which this one exists, if it says so. */
  readonly master = new TrackedTuple();
  hasMaster = false;
  private isInZone = false;
  /** As bytes in their order, little-endian words. */
  readonly label = new Uint32Array(LABEL_WORDS);
  /** In the direction of the original tuple, and back. */
  sentPackets = 0;
  sentBytes = 0;
  receivedPackets = 0;
  receivedBytes = 0;
  /** Milliseconds since 1970, with a fraction; 0 if the kernel does not say. */
  start = 0;
  stop = 0;

  /** Fills it from the payload of a netlink message. */
  read(view: DataView, start: number, end: number): void {
    this.readAttributes(familyIn(view, start, end), view, start + HEADER_LENGTH, end);
  }

  /** Fills it from the same attributes without a header. */
  readAttributes(family: Family, view: DataView, start: number, end: number): void {
    this.clear();
    this.family = family;
    for (let at = start; at + ALIGNMENT <= end; ) {
      const length = attributeLength(view, at, end);
      const [value, stop] = [at + ALIGNMENT, at + length];
      switch (view.getUint16(at + 2, true) & ATTRIBUTE_TYPE_MASK) {
        case ATTRIBUTE.original:
          readTuple(this.original, view, value, stop);
          break;
        case ATTRIBUTE.reply:
          readTuple(this.reply, view, value, stop);
          break;
        case ATTRIBUTE.master:
          readTuple(this.master, view, value, stop);
          this.hasMaster = true;
          break;
        case ATTRIBUTE.zone:
          this.isInZone = true;
          break;
        case ATTRIBUTE.status:
          this.status = u32At(view, value, stop);
          break;
        case ATTRIBUTE.id:
          this.id = u32At(view, value, stop);
          break;
        case ATTRIBUTE.labels:
          this.readLabel(view, value, stop);
          break;
        case ATTRIBUTE.timestamp:
          this.start = u64In(view, value, stop, TIMESTAMP.start) / NANOSECONDS;
          this.stop = u64In(view, value, stop, TIMESTAMP.stop) / NANOSECONDS;
          break;
        case ATTRIBUTE.originalCounters:
          this.sentPackets = u64In(view, value, stop, COUNTERS.packets);
          this.sentBytes = u64In(view, value, stop, COUNTERS.bytes);
          break;
        case ATTRIBUTE.replyCounters:
          this.receivedPackets = u64In(view, value, stop, COUNTERS.packets);
          this.receivedBytes = u64In(view, value, stop, COUNTERS.bytes);
          break;
      }
      at += aligned(length);
    }
  }

  /** The kernel tracks it apart from those of the host, in both directions or in one. */
  get hasZone(): boolean {
    return this.isInZone || this.original.hasZone || this.reply.hasZone;
  }

  private clear(): void {
    this.id = 0;
    this.status = 0;
    this.original.clear();
    this.reply.clear();
    if (this.hasMaster) this.master.clear();
    this.hasMaster = false;
    this.isInZone = false;
    this.label.fill(0);
    this.sentPackets = 0;
    this.sentBytes = 0;
    this.receivedPackets = 0;
    this.receivedBytes = 0;
    this.start = 0;
    this.stop = 0;
  }

  private readLabel(view: DataView, start: number, end: number): void {
    for (let index = 0; index < LABEL_WORDS && start + index * 4 + 4 <= end; index++)
      this.label[index] = view.getUint32(start + index * 4, true);
  }
}

function readTuple(tuple: TrackedTuple, view: DataView, start: number, end: number): void {
  for (let at = start; at + ALIGNMENT <= end; ) {
    const length = attributeLength(view, at, end);
    const type = view.getUint16(at + 2, true) & ATTRIBUTE_TYPE_MASK;
    if (type === TUPLE.ip) readAddresses(tuple, view, at + ALIGNMENT, at + length);
    else if (type === TUPLE.protocol) readProtocol(tuple, view, at + ALIGNMENT, at + length);
    else if (type === TUPLE.zone) tuple.hasZone = true;
    at += aligned(length);
  }
}

function readAddresses(tuple: TrackedTuple, view: DataView, start: number, end: number): void {
  for (let at = start; at + ALIGNMENT <= end; ) {
    const length = attributeLength(view, at, end);
    const type = view.getUint16(at + 2, true) & ATTRIBUTE_TYPE_MASK;
    const words = type === IP.ipv4Source || type === IP.ipv6Source ? tuple.source : tuple.destination;
    const count = Math.min((length - ALIGNMENT) >> 2, ADDRESS_WORDS);
    for (let index = 0; index < count; index++) words[index] = view.getUint32(at + ALIGNMENT + index * 4);
    at += aligned(length);
  }
}

function readProtocol(tuple: TrackedTuple, view: DataView, start: number, end: number): void {
  for (let at = start; at + ALIGNMENT <= end; ) {
    const length = attributeLength(view, at, end);
    const [value, stop] = [at + ALIGNMENT, at + length];
    switch (view.getUint16(at + 2, true) & ATTRIBUTE_TYPE_MASK) {
      case PROTOCOL.number:
        tuple.protocol = u8At(view, value, stop);
        break;
      case PROTOCOL.sourcePort:
      case PROTOCOL.icmpId:
      case PROTOCOL.icmpv6Id:
        tuple.sourcePort = u16At(view, value, stop);
        break;
      case PROTOCOL.destinationPort:
        tuple.destinationPort = u16At(view, value, stop);
        break;
      case PROTOCOL.icmpType:
      case PROTOCOL.icmpv6Type:
        tuple.destinationPort |= u8At(view, value, stop) << 8;
        break;
      case PROTOCOL.icmpCode:
      case PROTOCOL.icmpv6Code:
        tuple.destinationPort |= u8At(view, value, stop);
        break;
    }
    at += aligned(length);
  }
}

/** Beyond 2^53 it is rounded: no counter gets there, and times keep a quarter of a microsecond. */
function u64In(view: DataView, start: number, end: number, wanted: number): number {
  for (let at = start; at + ALIGNMENT <= end; ) {
    const length = attributeLength(view, at, end);
    const [value, stop] = [at + ALIGNMENT, at + length];
    if ((view.getUint16(at + 2, true) & ATTRIBUTE_TYPE_MASK) === wanted)
      return u32At(view, value, stop) * TWO_TO_32 + u32At(view, value + 4, stop);
    at += aligned(length);
  }
  return 0;
}

export function familyIn(view: DataView, start: number, end: number): Family {
  return u8At(view, start, end) === IPV6_FAMILY ? 6 : 4;
}

function u8At(view: DataView, at: number, end: number): number {
  if (at + 1 > end) throw unfitting(end - at);
  return view.getUint8(at);
}

function u16At(view: DataView, at: number, end: number): number {
  if (at + 2 > end) throw unfitting(end - at);
  return view.getUint16(at);
}

function u32At(view: DataView, at: number, end: number): number {
  if (at + 4 > end) throw unfitting(end - at);
  return view.getUint32(at);
}

function attributeLength(view: DataView, at: number, end: number): number {
  const length = view.getUint16(at, true);
  if (length >= ALIGNMENT && at + length <= end) return length;
  throw unfitting(length);
}

function unfitting(length: number): PluginError {
  return new PluginError(
    "kernel-refused",
    `Cannot read a tracked connection: an attribute of ${length} bytes does not fit`,
  );
}
