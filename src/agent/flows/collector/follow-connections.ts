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
import { type Cipheriv, createCipheriv, randomBytes } from "node:crypto";
import type { FlowDecision, FlowRecord } from "../../../flows/flow-record.ts";
import { STATUS, type TrackedMessage, type TrackedTuple } from "../../../linux/conntrack-message.ts";
import type { CollectorLosses, OpenRecords, SeenFlow, SummedFlow } from "../flow-sink.ts";
import { answering, hasPorts, nameEnds, recordOf } from "./connection-record.ts";
import { ConnectionStore, MARK } from "./connection-store.ts";
import { type AddressTexts, type Asking, type EndNames, endOfRecord, type NamedEnd } from "./end-names.ts";
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

export interface FollowedFlows {
  readonly records: readonly SeenFlow[];
  readonly overLimit: readonly FlowRecord[];
  /** Of records that were handed on before their names were sure. */
  readonly sums: readonly SummedFlow[];
}

/**
 * Numbers the records of one collector. An ID is shown to readers who may know neither the node nor how much others do there: it
 * is the number, encrypted with a key of this collector. So it tells nothing, and is unique in the cluster.
 */
export class FlowIds {
  #last = 0;
  readonly #cipher: Cipheriv;

  constructor(key: Uint8Array = randomBytes(ID_KEY_BYTES)) {
    this.#cipher = createCipheriv("aes-128-ecb", key, null).setAutoPadding(false);
  }

  next(): number {
    this.#last += 1;
    return this.#last;
  }

  text(number: number): string {
    const block = Buffer.alloc(ID_KEY_BYTES);
    block.writeUIntBE(number, 0, MOST_NUMBER_BYTES);
    return this.#cipher.update(block).toString("hex", 0, ID_BYTES);
  }
}

/** What an earlier collector knew. */
interface FormerRecord {
  readonly id: string;
  readonly decisions: readonly FlowDecision[];
}

type Losses = { -readonly [Loss in keyof CollectorLosses]: number };

/** A record waits so long for names, and its names may change so long: a pod that was just created is not known yet. */
const NAMES_MILLISECONDS = 700;
const SETTLED_MILLISECONDS = 2_500;
/** From this many on, the names of those that wait are looked at in turns. */
const MANY_WAIT = 5_000;
const FLUSHES_OF_WAITING = 4;
/** While the agent compiles policy it does not answer. */
const ANSWERED_MILLISECONDS = 30_000;
/** A block of the cipher is as long as its key. */
const ID_KEY_BYTES = 16;
const MOST_NUMBER_BYTES = 6;
/** Enough that no two collectors have the same one. */
const ID_BYTES = 10;
const NOTHING = { flows: 0, packets: 0, bytes: 0 } as const;
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
  /** Rows that settle, in the order in which they were heard of; and rows to be handed on again. */
  readonly #settling: Record<4 | 6, number[]> = { 4: [], 6: [] };
  readonly #changed: Record<4 | 6, number[]> = { 4: [], 6: [] };
  /** Ready records that have no row. */
  #overLimit: FlowRecord[] = [];
  #records: SeenFlow[] = [];
  #sums: SummedFlow[] = [];
  /** IDs of connections that were left out, since there were too many; and those of them that are still in the table. */
  #leftOut = new Set<number>();
  #leftOutInLook = new Set<number>();
  /** What an earlier collector knew of a row. */
  readonly #former: Readonly<Record<4 | 6, Map<number, FormerRecord>>> = { 4: new Map(), 6: new Map() };
  readonly #parents: Readonly<Record<4 | 6, Map<number, string>>> = { 4: new Map(), 6: new Map() };
  /** By tuple: connections of ICMP may have the same one. */
  #formerRecords = new Map<string, FlowRecord[]>();
  #summedUntil = Number.NEGATIVE_INFINITY;
  /** Rows whose records were handed on with a number instead of a rule. */
  readonly #incomplete: Readonly<Record<4 | 6, Set<number>>> = { 4: new Set(), 6: new Set() };
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
  #flushes = 0;
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
  ) {}

  get losses(): CollectorLosses {
    return { ...this.#losses };
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
    for (const store of [this.#stores[4], this.#stores[6]])
      for (const row of this.#incomplete[store.family]) {
        if (!this.#isComplete(store, row)) continue;
        this.#incomplete[store.family].delete(row);
        this.#markChanged(store, row);
      }
  }

  #isComplete(store: ConnectionStore, row: number): boolean {
    store.copyLabel(row, this.#scratchLabel);
    return !this.rules.of(this.#scratchLabel).isIncomplete;
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
      if (!store.addLabel(known, message.label)) this.#markChanged(store, known);
      return;
    }
    if (this.size >= this.limits.mostConnections) {
      this.#leaveOut(message, now);
      return;
    }
    const row = this.#add(message, now, now);
    if (now < this.#labelsSince) mark(store, row, MARK.older);
    if (!this.#mayBegin(now)) this.#limit(store, row);
    this.#ask(store, row, now);
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
    else if (!this.#endedInLook.has(message.id)) this.#found(message, now);
  }

  /** The whole table was read. Returns the numbers in the labels of its connections, and of those that are still to be recorded. */
  endLook(now: number): readonly number[] {
    for (const store of [this.#stores[4], this.#stores[6]]) {
      this.#noteUnseenNumbers(store);
      this.#endMissing(store, now);
    }
    for (const record of [...this.#formerRecords.values()].flat())
      this.#records.push({ record: { ...record, state: "ended" }, added: { isNew: false, ...NOTHING } });
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
    this.#flushes += 1;
    for (const store of [this.#stores[4], this.#stores[6]]) {
      this.#settle(store, now);
      this.#handOnChanged(store, now);
    }
    const flows = { records: this.#records, overLimit: this.#overLimit, sums: this.#sums };
    this.#records = [];
    this.#overLimit = [];
    this.#sums = [];
    return flows;
  }

  /** As `flush`, with the sums of all records that were handed on: nothing follows. */
  flushLast(now: number): FollowedFlows {
    const { records, overLimit, sums } = this.flush(now);
    for (const store of [this.#stores[4], this.#stores[6]])
      for (const row of this.#settling[store.family]) this.#sumPut(store, row);
    return { records, overLimit, sums: [...sums, ...this.#sums] };
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

  #mayBegin(now: number): boolean {
    const second = Math.floor(now / 1_000);
    if (second !== this.#second) [this.#second, this.#begunInSecond] = [second, 0];
    if (this.#begunInSecond >= this.options.mostPerSecond) return false;
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
    store.marks[row] = MARK.settling;
    this.#settling[store.family].push(row);
    if (message.hasMaster && (message.status & STATUS.expected) !== 0) this.#noteParent(store, row, message);
    return row;
  }

  #limit(store: ConnectionStore, row: number): void {
    this.#losses.overLimit += 1;
    mark(store, row, MARK.overLimit);
  }

  /** The question goes out at once, so that the answer is there when the record is made. */
  #ask(store: ConnectionStore, row: number, now: number): void {
    const asking = hasMark(store, row, MARK.overLimit) ? "asks near" : "asks";
    if (this.#nameEnds(store, row, { now, asking })) mark(store, row, MARK.isNamed);
  }

  #nameEnds(store: ConnectionStore, row: number, how: { readonly now: number; readonly asking: Asking }): boolean {
    return nameEnds({ store, row }, { names: this.names, texts: this.texts, ...how });
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
    if (!this.#nameEnds(store, row, { now, asking: "asks not" })) this.#losses.namesUnknown += 1;
    this.#overLimit.push(this.#recordOf(store, row));
    store.free(row);
  }

  #noteParent(store: ConnectionStore, row: number, { family, master }: TrackedMessage): void {
    mark(store, row, MARK.related);
    this.#searches += 1;
    const parent = this.#searches > MOST_SEARCHES ? -1 : store.search(master);
    const id = parent < 0 ? undefined : this.#idOf(store, parent);
    this.#parents[store.family].set(row, id ?? this.#tupleWords(family, master));
  }

  #idOf(store: ConnectionStore, row: number): string {
    return this.#former[store.family].get(row)?.id ?? this.ids.text(store.numbers[row] ?? 0);
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
    this.#markChanged(store, row);
  }

  /** In the table without an event: it is older than the collector, or the event was lost. */
  #found(message: TrackedMessage, now: number): void {
    if (this.size >= this.limits.mostConnections) {
      this.#leaveOut(message, now);
      return;
    }
    const store = this.#stores[message.family];
    const row = this.#add(message, now, message.start === 0 ? now : message.start);
    mark(store, row, MARK.found);
    store.setCounts(row, message);
    store.changedAt[row] = now;
    if (message.start === 0 || message.start < this.#labelsSince) mark(store, row, MARK.older);
    if (this.#takeFormer(store, row, message)) return;
    if (message.start !== 0 && message.start < this.#summedUntil) store.takeSum(row);
    this.#ask(store, row, now);
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
    this.#former[store.family].set(row, { id: former.id, decisions: former.decisions });
    const isLocal = (address: string) => this.names.peek(address)?.isLocal === true;
    const endOf = (end: FlowRecord["source"]): NamedEnd => ({ ...endOfRecord(end), isLocal: isLocal(end.address) });
    store.sources[row] = endOf(former.source);
    store.destinations[row] = endOf(former.destination);
    if (former.backend !== undefined) store.backends[row] = endOf(former.backend);
    mark(store, row, MARK.isNamed | MARK.isPut | MARK.isSummed);
    store.summed[row * 2] = former.sent.packets + former.received.packets;
    store.summed[row * 2 + 1] = former.sent.bytes + former.received.bytes;
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
    mark(store, row, MARK.hasEnded);
    this.#markChanged(store, row);
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
    mark(store, row, isOlder ? MARK.older : MARK.eventLost);
    if (!this.#takeFormer(store, row, message)) {
      if (!isOlder) this.#losses.rulesUnknown += 1;
      if (!this.#mayBegin(now)) this.#limit(store, row);
      this.#ask(store, row, now);
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
      if (!store.isUsed(row) || hasMark(store, row, MARK.hasEnded)) continue;
      if ((store.seenIn[row] ?? 0) + MISSED_LOOKS > this.#look || (store.heardAt[row] ?? 0) >= this.#lookBegan)
        continue;
      store.leaveIndex(row);
      store.changedAt[row] = now;
      mark(store, row, MARK.hasEnded);
      this.#markChanged(store, row);
    }
  }

  #markChanged(store: ConnectionStore, row: number): void {
    if (hasMark(store, row, MARK.hasChanged)) return;
    mark(store, row, MARK.hasChanged);
    this.#changed[store.family].push(row);
  }

  /** Hands on what has its names; looks at names a last time when they change no more. */
  #settle(store: ConnectionStore, now: number): void {
    const waiting = this.#settling[store.family];
    let kept = 0;
    for (const row of waiting) {
      const age = now - (store.heardAt[row] ?? 0);
      this.#settleRow(store, row, { age, now });
      if (hasMark(store, row, MARK.settling)) waiting[kept++] = row;
    }
    waiting.length = kept;
  }

  #settleRow(store: ConnectionStore, row: number, { age, now }: { readonly age: number; readonly now: number }): void {
    const isFormer = this.#former[store.family].has(row);
    if (!hasMark(store, row, MARK.isHandedOn)) {
      if (!hasMark(store, row, MARK.isNamed)) this.#ask(store, row, now);
      const isDue = hasMark(store, row, MARK.isNamed) || age >= NAMES_MILLISECONDS;
      if (!isDue || (hasMark(store, row, MARK.found) && !isFormer && !this.#mayBegin(now))) return;
      mark(store, row, MARK.isHandedOn);
      if (!hasMark(store, row, MARK.overLimit)) this.#markChanged(store, row);
    }
    if (!hasMark(store, row, MARK.overLimit)) {
      if (age < SETTLED_MILLISECONDS) return;
      const isTurn = (this.#flushes + row) % FLUSHES_OF_WAITING === 0;
      if (!isTurn && this.#settling[store.family].length > MANY_WAIT) return;
      const isNamed = isFormer || this.#nameAgain(store, row, now);
      const isWaiting = !isNamed || this.#incomplete[store.family].has(row);
      if (isWaiting && age < ANSWERED_MILLISECONDS) return;
      if (!isNamed) this.#losses.namesUnknown += 1;
    }
    unmark(store, row, MARK.settling);
    if (!hasMark(store, row, MARK.hasChanged)) this.#sumPut(store, row);
    this.#freeIfDone(store, row);
  }

  /** What the roll-ups lack of a record that was handed on. */
  #sumPut(store: ConnectionStore, row: number): void {
    if (!hasMark(store, row, MARK.isPut)) return;
    const added = store.takeSum(row);
    if (added.flows + added.packets + added.bytes > 0) this.#sums.push({ record: this.#recordOf(store, row), added });
  }

  /** Roll-ups cannot be corrected: who is outside at first may be a new pod. */
  #hasSureNames(store: ConnectionStore, row: number): boolean {
    if (!hasMark(store, row, MARK.settling)) return true;
    return [store.sources[row], store.destinations[row], store.backends[row]].every(
      (end) => end?.shown.kind !== "outside",
    );
  }

  /** A record whose names have changed is handed on again. Returns whether all are known. */
  #nameAgain(store: ConnectionStore, row: number, now: number): boolean {
    const [source, destination, backend] = [store.sources[row], store.destinations[row], store.backends[row]];
    const isNamed = this.#nameEnds(store, row, { now, asking: "asks" });
    if (source !== store.sources[row] || destination !== store.destinations[row] || backend !== store.backends[row])
      this.#markChanged(store, row);
    return isNamed;
  }

  #handOnChanged(store: ConnectionStore, now: number): void {
    const changed = this.#changed[store.family];
    let kept = 0;
    for (const row of changed) {
      // Its first record is still to come, and will have the change.
      if (!hasMark(store, row, MARK.isHandedOn)) {
        changed[kept++] = row;
        continue;
      }
      unmark(store, row, MARK.hasChanged);
      this.#handOn(store, row, now);
      this.#freeIfDone(store, row);
    }
    changed.length = kept;
  }

  #handOn(store: ConnectionStore, row: number, now: number): void {
    if (hasMark(store, row, MARK.overLimit)) {
      if (!hasMark(store, row, MARK.hasEnded)) return;
      if (!this.#nameEnds(store, row, { now, asking: "asks not" })) this.#losses.namesUnknown += 1;
      this.#overLimit.push(this.#recordOf(store, row));
      return;
    }
    if (this.#isComplete(store, row) || this.#former[store.family].has(row)) this.#incomplete[store.family].delete(row);
    else this.#incomplete[store.family].add(row);
    const isNew = !hasMark(store, row, MARK.isPut);
    mark(store, row, MARK.isPut);
    const added = this.#hasSureNames(store, row) ? store.takeSum(row) : NOTHING;
    const source = store.sources[row]?.endpoint;
    const destination = answering(store, row)?.endpoint;
    this.#records.push({
      record: this.#recordOf(store, row),
      added: { isNew, ...added },
      ...(source === undefined ? {} : { source }),
      ...(destination === undefined ? {} : { destination }),
    });
  }

  #recordOf(store: ConnectionStore, row: number): FlowRecord {
    const { node } = this.options;
    store.copyLabel(row, this.#scratchLabel);
    const isRelated = hasMark(store, row, MARK.related);
    return recordOf(
      { store, row },
      {
        node,
        texts: this.texts,
        meaning: this.rules.of(this.#scratchLabel),
        id: this.#idOf(store, row),
        formerDecisions: this.#former[store.family].get(row)?.decisions,
        relatedTo: isRelated ? this.#parents[store.family].get(row) : undefined,
      },
    );
  }

  #freeIfDone(store: ConnectionStore, row: number): void {
    const marks = store.marks[row] ?? 0;
    if ((marks & MARK.hasEnded) === 0 || (marks & (MARK.settling | MARK.hasChanged)) !== 0) return;
    this.#former[store.family].delete(row);
    this.#parents[store.family].delete(row);
    this.#incomplete[store.family].delete(row);
    store.free(row);
  }
}

function mark(store: ConnectionStore, row: number, bit: number): void {
  store.marks[row] = (store.marks[row] ?? 0) | bit;
}

function unmark(store: ConnectionStore, row: number, bit: number): void {
  store.marks[row] = (store.marks[row] ?? 0) & ~bit;
}

function hasMark(store: ConnectionStore, row: number, bit: number): boolean {
  return ((store.marks[row] ?? 0) & bit) !== 0;
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
