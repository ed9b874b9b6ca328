/**
 * The connections that are followed, as rows of a few large arrays: a host has 100,000 of them when it opens 1,000 in a second,
 * since the kernel keeps an ended one for two minutes. As objects they would need more memory, and a collection of garbage.
 *
 * A row is found by the kernel's ID of the connection, which is a hash, together with its original tuple. Pure.
 */
import type { Family } from "../../../ip/address.ts";
import type { TrackedMessage, TrackedTuple } from "../../../linux/conntrack-message.ts";
import type { FlowCounts } from "../flow-sink.ts";
import type { NamedEnd } from "./end-names.ts";

const FIRST_ROWS = 1_024;
const LABEL_WORDS = 3;
const NONE = -1;

/** What is known of a connection beside its fields, as bits. */
export const MARK = {
  /** It waits for names, or for the time after which they change no more. */
  settling: 1,
  /** A record of it was handed on. */
  isHandedOn: 2,
  /** A record of it is to be handed on. */
  hasChanged: 4,
  hasEnded: 8,
  /** Only for the roll-ups. */
  overLimit: 16,
  /** It was in the table before an event told of it. */
  found: 32,
  older: 64,
  eventLost: 128,
  /** It exists because of another one. */
  related: 256,
  /** The wait for names is over. */
  isNamed: 512,
  /** A record of it is in the history. */
  isPut: 1_024,
  /** The roll-ups have counted it. */
  isSummed: 2_048,
} as const;

export class ConnectionStore {
  ids = new Uint32Array(0);
  protocols = new Uint8Array(0);
  marks = new Uint16Array(0);
  /** Two words each, of the original tuple and of the reply: source port × 65,536 + destination port. */
  ports = new Uint32Array(0);
  /** Bits 32 to 127. */
  labels = new Uint32Array(0);
  /** Four addresses each: original source and destination, source and destination of the reply. */
  addresses = new Uint32Array(0);
  /** Of the record. */
  numbers = new Float64Array(0);
  /** When the collector heard of it. */
  heardAt = new Float64Array(0);
  startedAt = new Float64Array(0);
  changedAt = new Float64Array(0);
  /** Packets and bytes sent, packets and bytes received. */
  counts = new Float64Array(0);
  /** Packets and bytes that the roll-ups have. */
  summed = new Float64Array(0);
  /** The number of the last look at the table that had it. */
  seenIn = new Uint32Array(0);
  readonly sources: (NamedEnd | undefined)[] = [];
  readonly destinations: (NamedEnd | undefined)[] = [];
  readonly backends: (NamedEnd | undefined)[] = [];
  readonly addressWords: number;
  size = 0;
  /** Rows that have been used at some time. */
  #used = 0;
  readonly #free: number[] = [];
  /** Row + 1, at a place that the ID determines, or at one of the next ones. */
  #index = new Int32Array(0);

  constructor(readonly family: Family) {
    this.addressWords = family === 4 ? 1 : 4;
    this.#grow(FIRST_ROWS);
  }

  /** All rows are below it; some of them are free. */
  get end(): number {
    return this.#used;
  }

  /** The row of a connection that has not ended, or -1. */
  find(message: TrackedMessage): number {
    const mask = this.#index.length - 1;
    for (let place = message.id & mask; ; place = (place + 1) & mask) {
      const entry = this.#index[place] ?? 0;
      if (entry === 0) return NONE;
      if (this.ids[entry - 1] === message.id && this.#isOf(entry - 1, message)) return entry - 1;
    }
  }

  /** A row with the tuples and the label of the message, and nothing else yet. */
  add(message: TrackedMessage): number {
    if (this.#free.length === 0 && this.#used === this.ids.length) this.#grow(this.ids.length * 2);
    const row = this.#free.pop() ?? this.#used++;
    this.size += 1;
    this.#fill(row, message);
    this.#enter(row);
    return row;
  }

  /** It is not found any more; the row stays until `free`. */
  leaveIndex(row: number): void {
    const mask = this.#index.length - 1;
    let place = (this.ids[row] ?? 0) & mask;
    while (this.#index[place] !== row + 1) {
      if (this.#index[place] === 0) return;
      place = (place + 1) & mask;
    }
    this.#closeGap(place);
  }

  free(row: number): void {
    this.leaveIndex(row);
    this.marks[row] = 0;
    this.heardAt[row] = 0;
    this.sources[row] = undefined;
    this.destinations[row] = undefined;
    this.backends[row] = undefined;
    this.#free.push(row);
    this.size -= 1;
  }

  isUsed(row: number): boolean {
    return this.heardAt[row] !== 0;
  }

  mark(row: number, bits: number): void {
    this.marks[row] = (this.marks[row] ?? 0) | bits;
  }

  unmark(row: number, bits: number): void {
    this.marks[row] = (this.marks[row] ?? 0) & ~bits;
  }

  hasMark(row: number, bit: number): boolean {
    return ((this.marks[row] ?? 0) & bit) !== 0;
  }

  /** Returns whether the row has all of its bits already. */
  addLabel(row: number, label: Uint32Array): boolean {
    let isKnown = true;
    for (let index = 0; index < LABEL_WORDS; index++) {
      const [former, added] = [this.labels[row * LABEL_WORDS + index] ?? 0, label[index + 1] ?? 0];
      if ((former | added) >>> 0 === former) continue;
      this.labels[row * LABEL_WORDS + index] = former | added;
      isKnown = false;
    }
    return isKnown;
  }

  /** Writes it into the last three of four words. */
  copyLabel(row: number, label: Uint32Array): void {
    for (let index = 0; index < LABEL_WORDS; index++) label[index + 1] = this.labels[row * LABEL_WORDS + index] ?? 0;
  }

  /** Returns whether one differs from the former ones. */
  setCounts(row: number, message: TrackedMessage): boolean {
    const { counts } = this;
    const at = row * 4;
    const isSame =
      counts[at] === message.sentPackets &&
      counts[at + 1] === message.sentBytes &&
      counts[at + 2] === message.receivedPackets &&
      counts[at + 3] === message.receivedBytes;
    if (isSame) return false;
    counts[at] = message.sentPackets;
    counts[at + 1] = message.sentBytes;
    counts[at + 2] = message.receivedPackets;
    counts[at + 3] = message.receivedBytes;
    return true;
  }

  /** What the roll-ups do not have yet; they have it afterwards. */
  takeSum(row: number): FlowCounts {
    const { counts, summed } = this;
    const packets = (counts[row * 4] ?? 0) + (counts[row * 4 + 2] ?? 0);
    const bytes = (counts[row * 4 + 1] ?? 0) + (counts[row * 4 + 3] ?? 0);
    const marks = this.marks[row] ?? 0;
    const added = {
      flows: (marks & MARK.isSummed) === 0 ? 1 : 0,
      packets: Math.max(0, packets - (summed[row * 2] ?? 0)),
      bytes: Math.max(0, bytes - (summed[row * 2 + 1] ?? 0)),
    };
    this.marks[row] = marks | MARK.isSummed;
    summed[row * 2] = packets;
    summed[row * 2 + 1] = bytes;
    return added;
  }

  /** The first word of an address: 0 is the original source, 1 the destination, 2 and 3 those of the reply. */
  addressAt(row: number, which: number): number {
    return (row * 4 + which) * this.addressWords;
  }

  isSameAddress(row: number, one: number, other: number): boolean {
    const [first, second] = [this.addressAt(row, one), this.addressAt(row, other)];
    for (let index = 0; index < this.addressWords; index++)
      if (this.addresses[first + index] !== this.addresses[second + index]) return false;
    return true;
  }

  /** The row with this original tuple, or -1: looks at every row. */
  search(tuple: TrackedTuple): number {
    const ports = ((tuple.sourcePort << 16) | tuple.destinationPort) >>> 0;
    for (let row = 0; row < this.#used; row++) {
      if (this.ports[row * 2] !== ports || this.protocols[row] !== tuple.protocol || !this.isUsed(row)) continue;
      if (this.#hasAddress(row, 0, tuple.source) && this.#hasAddress(row, 1, tuple.destination)) return row;
    }
    return NONE;
  }

  #fill(row: number, { id, original, reply, label }: TrackedMessage): void {
    this.ids[row] = id;
    this.protocols[row] = original.protocol;
    this.marks[row] = 0;
    this.ports[row * 2] = (original.sourcePort << 16) | original.destinationPort;
    this.ports[row * 2 + 1] = (reply.sourcePort << 16) | reply.destinationPort;
    for (let index = 0; index < LABEL_WORDS; index++) this.labels[row * LABEL_WORDS + index] = label[index + 1] ?? 0;
    this.#putAddress(row, 0, original.source);
    this.#putAddress(row, 1, original.destination);
    this.#putAddress(row, 2, reply.source);
    this.#putAddress(row, 3, reply.destination);
    this.counts.fill(0, row * 4, row * 4 + 4);
    this.summed.fill(0, row * 2, row * 2 + 2);
  }

  #putAddress(row: number, which: number, words: Uint32Array): void {
    const at = this.addressAt(row, which);
    for (let index = 0; index < this.addressWords; index++) this.addresses[at + index] = words[index] ?? 0;
  }

  #isOf(row: number, { original }: TrackedMessage): boolean {
    return (
      this.ports[row * 2] === ((original.sourcePort << 16) | original.destinationPort) >>> 0 &&
      this.protocols[row] === original.protocol &&
      this.#hasAddress(row, 0, original.source) &&
      this.#hasAddress(row, 1, original.destination)
    );
  }

  #hasAddress(row: number, which: number, words: Uint32Array): boolean {
    const at = this.addressAt(row, which);
    for (let index = 0; index < this.addressWords; index++)
      if (this.addresses[at + index] !== words[index]) return false;
    return true;
  }

  #enter(row: number): void {
    const mask = this.#index.length - 1;
    let place = (this.ids[row] ?? 0) & mask;
    while (this.#index[place] !== 0) place = (place + 1) & mask;
    this.#index[place] = row + 1;
  }

  /** Later entries that were put aside because of the removed one move up. */
  #closeGap(removed: number): void {
    const mask = this.#index.length - 1;
    let gap = removed;
    for (let place = (gap + 1) & mask; ; place = (place + 1) & mask) {
      const entry = this.#index[place] ?? 0;
      if (entry === 0) break;
      const wanted = (this.ids[entry - 1] ?? 0) & mask;
      if (((place - wanted) & mask) < ((place - gap) & mask)) continue;
      this.#index[gap] = entry;
      gap = place;
    }
    this.#index[gap] = 0;
  }

  #grow(rows: number): void {
    this.ids = larger(this.ids, new Uint32Array(rows));
    this.protocols = larger(this.protocols, new Uint8Array(rows));
    this.marks = larger(this.marks, new Uint16Array(rows));
    this.ports = larger(this.ports, new Uint32Array(rows * 2));
    this.labels = larger(this.labels, new Uint32Array(rows * LABEL_WORDS));
    this.addresses = larger(this.addresses, new Uint32Array(rows * 4 * this.addressWords));
    this.numbers = larger(this.numbers, new Float64Array(rows));
    this.heardAt = larger(this.heardAt, new Float64Array(rows));
    this.startedAt = larger(this.startedAt, new Float64Array(rows));
    this.changedAt = larger(this.changedAt, new Float64Array(rows));
    this.counts = larger(this.counts, new Float64Array(rows * 4));
    this.summed = larger(this.summed, new Float64Array(rows * 2));
    this.seenIn = larger(this.seenIn, new Uint32Array(rows));
    const former = this.#index;
    this.#index = new Int32Array(rows * 2);
    for (const entry of former) if (entry !== 0) this.#enter(entry - 1);
  }
}

function larger<Numbers extends Uint8Array | Uint16Array | Uint32Array | Float64Array>(
  former: Numbers,
  next: Numbers,
): Numbers {
  next.set(former);
  return next;
}
