/**
 * Turns what the kernel says about connections into records of flows.
 *
 *   begins ───┐                        ┌─> a record when its names are known, at the latest after a moment
 *   entry ────┼─> followed connections ┼─> the same record again when names, counters or rules have changed
 *   ended ────┘                        └─> the last one, with the kernel's counters and times
 *
 * An event of the beginning has the label and no counters, one of the end has counters and no label: both are joined here. What
 * is followed is bounded, and everything that is left out is counted. Pure: time and messages are arguments, records are results.
 */
import type { FlowRecord } from "../../../flows/flow-record.ts";
import { STATUS, type TrackedMessage, type TrackedTuple } from "../../../linux/conntrack-message.ts";
import type { CollectorLosses, OpenRecords } from "../flow-sink.ts";
import { hasPorts } from "./connection-record.ts";
import { ConnectionStore, MARK } from "./connection-store.ts";
import type { AddressTexts, EndNames } from "./end-names.ts";
import type { FlowIds } from "./flow-ids.ts";
import { type FollowedFlows, RecordQueue } from "./record-queue.ts";
import type { RuleDecisions } from "./rule-decisions.ts";

export interface FollowLimits {
  /** Connections that are followed at the same time. */
  readonly mostConnections: number;
  /** Of those that are not followed, how many are remembered, so that their ends are not taken for lost events. */
  readonly mostLeftOut: number;
}

export const DEFAULT_LIMITS: FollowLimits = { mostConnections: 200_000, mostLeftOut: 300_000 };

export interface FollowOptions {
  readonly node: string;
  readonly vxlanPort: number;
  /** Of the settings: connections recorded one by one in a second. */
  readonly mostPerSecond: number;
}

type Losses = { -readonly [Loss in keyof CollectorLosses]: number };

const IPIP = 4;
const UDP = 17;
const LOOPBACK_NETWORK = 127;
/** Looks at all rows for the parent of a connection, per call of `flush`. */
const MOST_SEARCHES = 20;
/** A connection that this many looks at the table did not find has ended without an event. */
const MISSED_LOOKS = 2;
/** The kernel's time of the beginning and the time of its event are at most so far apart. */
const SAME_START_MILLISECONDS = 3_000;

export class ConnectionFollower {
  readonly #stores: Readonly<Record<4 | 6, ConnectionStore>> = { 4: new ConnectionStore(4), 6: new ConnectionStore(6) };
  readonly #queue: RecordQueue;
  /** IDs of connections that were left out, since there were too many; and those of them that are still in the table. */
  #leftOut = new Set<number>();
  #leftOutInLook = new Set<number>();
  /** By tuple: connections of ICMP may have the same one. */
  #formerRecords = new Map<string, FlowRecord[]>();
  #summedUntil = Number.NEGATIVE_INFINITY;
  readonly #losses: Losses = {
    kernelOverruns: 0,
    rulesUnknown: 0,
    overLimit: 0,
    overCapacity: 0,
    deniedSuppressed: 0,
    namesUnknown: 0,
  };
  readonly #scratchLabel = new Uint32Array(4);
  #second = 0;
  #begunInSecond = 0;
  #searches = 0;
  #lastOverrun = Number.NEGATIVE_INFINITY;
  #knowsHostPoints = false;
  /** Earlier connections without a label are older than the rules that write one. */
  #labelsSince = Number.POSITIVE_INFINITY;
  #look = 0;
  #lookBegan = Number.NEGATIVE_INFINITY;
  #numbersInLook: Set<number> | undefined;
  /** IDs of connections that ended while the table is being read: an entry of one was read before. */
  readonly #endedInLook = new Set<number>();

  constructor(
    private options: FollowOptions,
    private readonly names: EndNames,
    private readonly rules: RuleDecisions,
    private readonly texts: AddressTexts,
    private readonly ids: FlowIds,
    private readonly limits: FollowLimits = DEFAULT_LIMITS,
  ) {
    this.#queue = new RecordQueue({
      ...{ stores: this.#stores, names, rules, texts, ids },
      node: () => this.options.node,
      mayBeginFound: (now) => this.#mayBegin(now, Math.ceil(this.options.mostPerSecond / 2)),
    });
  }

  get losses(): CollectorLosses {
    return { ...this.#losses, namesUnknown: this.#losses.namesUnknown + this.#queue.namesUnknown };
  }

  /** Connections that are followed now. */
  get size(): number {
    return this.#stores[4].size + this.#stores[6].size;
  }

  configure(options: FollowOptions): void {
    this.options = options;
  }

  /** From this time on, every rule that accepts writes its number into the label. */
  noteLabelsSince(time: number): void {
    this.#labelsSince = Math.min(this.#labelsSince, time);
  }

  /**
   * Records of an earlier collector that are still open: before the first look at the table. `summedUntil`: the roll-ups have
   * what began before this time.
   */
  adopt({ records, leftOut }: OpenRecords, summedUntil?: number): void {
    this.#losses.overCapacity += leftOut;
    for (const record of records) {
      const key = keyOfRecord(record);
      const same = this.#formerRecords.get(key);
      if (same === undefined) this.#formerRecords.set(key, [record]);
      else same.push(record);
    }
    this.#summedUntil = summedUntil ?? this.#summedUntil;
  }

  /** The agent has told what numbers stand for: records that lack it are handed on again. */
  noteRules(): void {
    this.#queue.noteRules();
  }

  /** The kernel had events that did not fit into the buffer. The table is to be looked at soon. */
  noteOverrun(now: number): void {
    this.#losses.kernelOverruns += 1;
    this.#lastOverrun = now;
  }

  /** A rule has denied so many more packets than it has reported. */
  noteSuppressed(packets: number): void {
    this.#losses.deniedSuppressed += packets;
  }

  /** So many records of denied packets do not say who the ends are. */
  noteNamesUnknown(records: number): void {
    this.#losses.namesUnknown += records;
  }

  begins(message: TrackedMessage, now: number): void {
    if (!this.#isRecorded(message)) return;
    this.#noteNumbers(message);
    const store = this.#stores[message.family];
    const known = store.find(message);
    if (known >= 0) {
      if (!store.addLabel(known, message.label)) this.#queue.markChanged(store, known);
      return;
    }
    if (this.size >= this.limits.mostConnections) {
      this.#leaveOut(message, now);
      return;
    }
    const row = this.#add(message, now, now);
    if (now < this.#labelsSince) store.mark(row, MARK.older);
    if (!this.#mayBegin(now)) this.#limit(store, row);
    this.#queue.ask(store, row, now);
  }

  ended(message: TrackedMessage, now: number): void {
    if (this.#numbersInLook !== undefined) this.#endedInLook.add(message.id);
    const store = this.#stores[message.family];
    const known = store.find(message);
    if (known >= 0) this.#end(store, known, message, now);
    else if (!this.#leftOut.delete(message.id)) this.#endedUnheard(message, now);
  }

  /** A look at the whole table begins. */
  beginLook(now: number): void {
    this.#look += 1;
    this.#lookBegan = now;
    this.#numbersInLook = new Set();
    this.#endedInLook.clear();
    this.#leftOutInLook = new Set();
  }

  entry(message: TrackedMessage, now: number): void {
    if (!this.#isRecorded(message)) return;
    this.#noteNumbers(message);
    const store = this.#stores[message.family];
    const known = store.find(message);
    if (known >= 0) this.#update(store, known, message, now);
    else if (this.#leftOut.has(message.id)) this.#leftOutInLook.add(message.id);
    // Of a dying one, the kernel has told the end before it leaves the table.
    else if (!this.#endedInLook.has(message.id) && (message.status & STATUS.dying) === 0) this.#found(message, now);
  }

  /** The whole table was read. Returns the numbers in the labels of its connections, and of those that are still to be recorded. */
  endLook(now: number): readonly number[] {
    for (const store of [this.#stores[4], this.#stores[6]]) {
      this.#noteUnseenNumbers(store);
      this.#endMissing(store, now);
    }
    for (const record of [...this.#formerRecords.values()].flat()) this.#queue.putGone(record);
    this.#formerRecords = new Map();
    this.#leftOut = this.#leftOutInLook.intersection(this.#leftOut);
    const numbers = [...(this.#numbersInLook ?? [])];
    this.#numbersInLook = undefined;
    this.#endedInLook.clear();
    return numbers;
  }

  /** The records that are new or have changed since the last call. */
  flush(now: number): FollowedFlows {
    this.#searches = 0;
    return this.#queue.flush(now);
  }

  /** As `flush`, with all that waits for names, and all sums: nothing follows. In parts, since there may be very many. */
  flushLast(now: number): Iterable<FollowedFlows> {
    return this.#queue.flushLast(now);
  }

  /** Whether anything of it is recorded: a rule has written into its label, or a workload of this node takes part. */
  #isRecorded(message: TrackedMessage): boolean {
    const { family, original, reply, label } = message;
    if (isLoopback(message)) return false;
    const isWorkloads = this.#isWorkload(family, original, reply);
    if (isWorkloads) return true;
    if (this.#isTunnel(original)) return false;
    return label[1] !== 0 || label[2] !== 0 || label[3] !== 0 || (message.hasMaster && this.#hasWorkload(message));
  }

  #hasWorkload({ family, master }: TrackedMessage): boolean {
    return this.#isWorkload(family, master, master);
  }

  #isWorkload(family: 4 | 6, original: TrackedTuple, reply: TrackedTuple): boolean {
    const isLocal = (words: Uint32Array) => this.names.isLocalWorkload(this.texts.of(family, words, 0));
    return isLocal(original.source) || isLocal(reply.source) || isLocal(original.destination);
  }

  #isTunnel({ protocol, destinationPort }: TrackedTuple): boolean {
    return protocol === IPIP || (protocol === UDP && destinationPort === this.options.vxlanPort);
  }

  #noteNumbers({ label }: TrackedMessage): void {
    if (this.#numbersInLook === undefined && this.#knowsHostPoints) return;
    if (label[1] === 0 && label[2] === 0 && label[3] === 0) return;
    const { numbers, hasHostPoint } = this.rules.of(label);
    this.#knowsHostPoints ||= hasHostPoint;
    for (const number of numbers) this.#numbersInLook?.add(number);
  }

  #mayBegin(now: number, most = this.options.mostPerSecond): boolean {
    const second = Math.floor(now / 1_000);
    if (second !== this.#second) [this.#second, this.#begunInSecond] = [second, 0];
    if (this.#begunInSecond >= most) return false;
    this.#begunInSecond += 1;
    return true;
  }

  #add(message: TrackedMessage, now: number, start: number): number {
    const store = this.#stores[message.family];
    const row = store.add(message);
    store.numbers[row] = this.ids.next();
    store.heardAt[row] = now;
    store.startedAt[row] = start;
    store.changedAt[row] = start;
    store.seenIn[row] = this.#look;
    this.#queue.add(store, row);
    if (message.hasMaster && (message.status & STATUS.expected) !== 0) this.#noteParent(store, row, message);
    return row;
  }

  #limit(store: ConnectionStore, row: number): void {
    this.#losses.overLimit += 1;
    store.mark(row, MARK.overLimit);
  }

  /** One flow for the roll-ups, of which no more will be known. */
  #leaveOut(message: TrackedMessage, now: number): void {
    this.#losses.overCapacity += 1;
    if (this.#leftOut.size < this.limits.mostLeftOut) this.#leftOut.add(message.id);
    if (this.#numbersInLook !== undefined) this.#leftOutInLook.add(message.id);
    const store = this.#stores[message.family];
    const row = store.add(message);
    store.numbers[row] = this.ids.next();
    store.heardAt[row] = now;
    store.startedAt[row] = now;
    store.changedAt[row] = now;
    this.#queue.putOverLimit(store, row, now);
    store.free(row);
  }

  #noteParent(store: ConnectionStore, row: number, { family, master }: TrackedMessage): void {
    this.#searches += 1;
    const parent = this.#searches > MOST_SEARCHES ? -1 : store.search(master);
    const id = parent < 0 ? undefined : this.#queue.idOf(store, parent);
    this.#queue.setParent(store, row, id ?? this.#tupleWords(family, master));
  }

  #tupleWords(family: 4 | 6, { source, destination, protocol, sourcePort, destinationPort }: TrackedTuple): string {
    const [from, to] = [source, destination].map((words) => this.texts.of(family, words, 0));
    const place = (address = "", port: number) => (family === 6 ? `[${address}]:${port}` : `${address}:${port}`);
    return `protocol ${protocol} ${place(from, sourcePort)} -> ${place(to, destinationPort)}`;
  }

  #update(store: ConnectionStore, row: number, message: TrackedMessage, now: number): void {
    store.seenIn[row] = this.#look;
    if (message.start !== 0) store.startedAt[row] = message.start;
    const hasLabel = store.addLabel(row, message.label);
    const hasCounts = !store.setCounts(row, message);
    if (hasLabel && hasCounts) return;
    store.changedAt[row] = now;
    this.#queue.markChanged(store, row);
  }

  /** In the table without an event: it is older than the collector, or the event was lost. */
  #found(message: TrackedMessage, now: number): void {
    if (this.size >= this.limits.mostConnections) {
      this.#leaveOut(message, now);
      return;
    }
    const store = this.#stores[message.family];
    const row = this.#add(message, now, message.start === 0 ? now : message.start);
    store.mark(row, MARK.found);
    store.setCounts(row, message);
    store.changedAt[row] = now;
    if (message.start === 0 || message.start < this.#labelsSince) store.mark(row, MARK.older);
    if (this.#takeFormer(store, row, message)) return;
    if (message.start !== 0 && message.start < this.#summedUntil) store.takeSum(row);
    this.#queue.ask(store, row, now);
  }

  /** The ID and the names that an earlier collector gave it, if it did. */
  #takeFormer(store: ConnectionStore, row: number, message: TrackedMessage): boolean {
    if (this.#formerRecords.size === 0) return false;
    const key = this.#keyOf(message);
    const same = this.#formerRecords.get(key) ?? [];
    const at = same.findIndex(
      ({ start }) => message.start === 0 || Math.abs(message.start - start) <= SAME_START_MILLISECONDS,
    );
    const former = same[at];
    if (former === undefined) return false;
    same.splice(at, 1);
    if (same.length === 0) this.#formerRecords.delete(key);
    this.#queue.continue(store, row, former);
    return true;
  }

  #keyOf({ family, original }: TrackedMessage): string {
    const { protocol, sourcePort, destinationPort } = original;
    const [from, to] = [original.source, original.destination].map((words) => this.texts.of(family, words, 0));
    return hasPorts(protocol)
      ? tupleKey(protocol, `${from} ${sourcePort}`, `${to} ${destinationPort}`)
      : tupleKey(protocol, `${from}`, `${to}`);
  }

  #end(store: ConnectionStore, row: number, message: TrackedMessage, now: number): void {
    store.leaveIndex(row);
    store.setCounts(row, message);
    if (message.start !== 0) store.startedAt[row] = message.start;
    store.changedAt[row] = message.stop === 0 ? now : message.stop;
    store.mark(row, MARK.hasEnded);
    this.#queue.markChanged(store, row);
  }

  /** Nobody has told of its beginning. */
  #endedUnheard(message: TrackedMessage, now: number): void {
    const mayHaveLabel =
      this.#knowsHostPoints && !this.#isTunnel(message.original) && message.start <= this.#lastOverrun;
    if (!this.#isRecorded(message) && !(mayHaveLabel && this.#isOfHost(message))) return;
    if (this.size >= this.limits.mostConnections) {
      this.#losses.overCapacity += 1;
      return;
    }
    const store = this.#stores[message.family];
    const row = this.#add(message, now, message.start === 0 ? now : message.start);
    const isOlder = message.start === 0 || message.start < this.#labelsSince;
    store.mark(row, isOlder ? MARK.older : MARK.eventLost);
    if (!this.#takeFormer(store, row, message)) {
      if (!isOlder) this.#losses.rulesUnknown += 1;
      if (!this.#mayBegin(now)) this.#limit(store, row);
      this.#queue.ask(store, row, now);
    }
    this.#end(store, row, message, now);
  }

  #isOfHost(message: TrackedMessage): boolean {
    if (isLoopback(message)) return false;
    const { family, original, reply } = message;
    return [original.source, reply.source].some(
      (words) => this.names.peek(this.texts.of(family, words, 0))?.isLocal === true,
    );
  }

  /** Of what has ended, or was missed: its record is still to be written, with the rules that its label names. */
  #noteUnseenNumbers(store: ConnectionStore): void {
    for (let row = 0; row < store.end; row++) {
      if (!store.isUsed(row) || store.seenIn[row] === this.#look) continue;
      store.copyLabel(row, this.#scratchLabel);
      for (const number of this.rules.of(this.#scratchLabel).numbers) this.#numbersInLook?.add(number);
    }
  }

  /** What two looks at the table did not find has ended, and its event was lost. */
  #endMissing(store: ConnectionStore, now: number): void {
    for (let row = 0; row < store.end; row++) {
      if (!store.isUsed(row) || store.hasMark(row, MARK.hasEnded)) continue;
      if ((store.seenIn[row] ?? 0) + MISSED_LOOKS > this.#look || (store.heardAt[row] ?? 0) >= this.#lookBegan)
        continue;
      store.leaveIndex(row);
      store.changedAt[row] = now;
      store.mark(row, MARK.hasEnded);
      this.#queue.markChanged(store, row);
    }
  }
}

function isLoopback({ family, original: { source } }: TrackedMessage): boolean {
  if (family === 4) return (source[0] ?? 0) >>> 24 === LOOPBACK_NETWORK;
  return source[0] === 0 && source[1] === 0 && source[2] === 0 && source[3] === 1;
}

function keyOfRecord({ protocol, source, destination }: FlowRecord): string {
  const end = ({ address, port }: FlowRecord["source"]) => (port === undefined ? address : `${address} ${port}`);
  return tupleKey(protocol, end(source), end(destination));
}

function tupleKey(protocol: number, from: string, to: string): string {
  return `${protocol} ${from} ${to}`;
}
