/**
 * When the record of a followed connection is handed on, and with which names and sums.
 *
 *   added ──▶ settling ── names are known, or a moment is over ──▶ handed on ──▶ names change no more ──▶ its sums are sure
 *   changed (counters, label, names, rules, end) ──▶ handed on again
 *
 * Roll-ups cannot be corrected, so they get the sums of a record only under names that are sure. A row is free again when its
 * connection has ended and nothing of it waits. Pure: time is an argument, records are results.
 */
import type { FlowDecision, FlowRecord } from "../../../flows/flow-record.ts";
import type { SeenFlow, SummedFlow } from "../flow-sink.ts";
import { answering, nameEnds, recordOf } from "./connection-record.ts";
import { type ConnectionStore, MARK } from "./connection-store.ts";
import { type AddressTexts, type Asking, type EndNames, endOfRecord, type NamedEnd } from "./end-names.ts";
import type { FlowIds } from "./flow-ids.ts";
import type { RuleDecisions } from "./rule-decisions.ts";

export interface FollowedFlows {
  readonly records: readonly SeenFlow[];
  readonly overLimit: readonly FlowRecord[];
  /** Of records that were handed on before their names were sure. */
  readonly sums: readonly SummedFlow[];
}

export interface RecordQueueOptions {
  readonly stores: Readonly<Record<4 | 6, ConnectionStore>>;
  readonly names: EndNames;
  readonly rules: RuleDecisions;
  readonly texts: AddressTexts;
  readonly ids: FlowIds;
  readonly node: () => string;
  /** Whether one more record of a connection that the table had first is within its share of the limit of this second. */
  readonly mayBeginFound: (now: number) => boolean;
}

/** What an earlier collector knew. */
interface FormerRecord {
  readonly id: string;
  readonly decisions: readonly FlowDecision[];
}

/** A record waits so long for names, and its names may change so long: a pod that was just created is not known yet. */
const NAMES_MILLISECONDS = 700;
const SETTLED_MILLISECONDS = 2_500;
/** From this many on, the names of those that wait are looked at in turns. */
const MANY_WAIT = 5_000;
const FLUSHES_OF_WAITING = 4;
/** While the agent compiles policy it does not answer. */
const ANSWERED_MILLISECONDS = 30_000;
const PART_OF_LAST = 1_000;
const NOTHING = { flows: 0, packets: 0, bytes: 0 } as const;

export class RecordQueue {
  /** Records whose ends nobody has named in time. */
  namesUnknown = 0;
  /** Rows that settle, in the order in which they were heard of; and rows to be handed on again. */
  readonly #settling: Record<4 | 6, number[]> = { 4: [], 6: [] };
  readonly #changed: Record<4 | 6, number[]> = { 4: [], 6: [] };
  /** Ready records that have no row. */
  #overLimit: FlowRecord[] = [];
  #records: SeenFlow[] = [];
  #sums: SummedFlow[] = [];
  /** What an earlier collector knew of a row. */
  readonly #former: Readonly<Record<4 | 6, Map<number, FormerRecord>>> = { 4: new Map(), 6: new Map() };
  readonly #parents: Readonly<Record<4 | 6, Map<number, string>>> = { 4: new Map(), 6: new Map() };
  /** Rows whose records were handed on with a number instead of a rule. */
  readonly #incomplete: Readonly<Record<4 | 6, Set<number>>> = { 4: new Set(), 6: new Set() };
  readonly #scratchLabel = new Uint32Array(4);
  #flushes = 0;

  constructor(private readonly options: RecordQueueOptions) {}

  /** A row that is new in its store. */
  add(store: ConnectionStore, row: number): void {
    store.mark(row, MARK.settling);
    this.#settling[store.family].push(row);
  }

  /** `id`: of the record of its parent, or the parent in words. */
  setParent(store: ConnectionStore, row: number, id: string): void {
    store.mark(row, MARK.related);
    this.#parents[store.family].set(row, id);
  }

  /** The row goes on with the ID and the names of this record. */
  continue(store: ConnectionStore, row: number, former: FlowRecord): void {
    this.#former[store.family].set(row, { id: former.id, decisions: former.decisions });
    if (former.relatedTo !== undefined) this.setParent(store, row, former.relatedTo);
    const isLocal = (address: string) => this.options.names.peek(address)?.isLocal === true;
    const endOf = (end: FlowRecord["source"]): NamedEnd => ({ ...endOfRecord(end), isLocal: isLocal(end.address) });
    store.sources[row] = endOf(former.source);
    store.destinations[row] = endOf(former.destination);
    if (former.backend !== undefined) store.backends[row] = endOf(former.backend);
    store.mark(row, MARK.isNamed | MARK.isPut | MARK.isSummed);
    store.summed[row * 2] = former.sent.packets + former.received.packets;
    store.summed[row * 2 + 1] = former.sent.bytes + former.received.bytes;
  }

  /** Of an earlier collector: its connection is gone. */
  putGone(record: FlowRecord): void {
    this.#records.push({ record: { ...record, state: "ended" }, added: { isNew: false, ...NOTHING } });
  }

  /** Only for the roll-ups: no more will be known of it. */
  putOverLimit(store: ConnectionStore, row: number, now: number): void {
    if (!this.#nameEnds(store, row, { now, asking: "asks not" })) this.namesUnknown += 1;
    this.#overLimit.push(this.#recordOf(store, row));
  }

  /** The question goes out at once, so that the answer is there when the record is made. */
  ask(store: ConnectionStore, row: number, now: number): void {
    const asking = store.hasMark(row, MARK.overLimit) ? "asks near" : "asks";
    if (this.#nameEnds(store, row, { now, asking })) store.mark(row, MARK.isNamed);
  }

  idOf(store: ConnectionStore, row: number): string {
    return this.#former[store.family].get(row)?.id ?? this.options.ids.text(store.numbers[row] ?? 0);
  }

  /** Its record is to be handed on again. */
  markChanged(store: ConnectionStore, row: number): void {
    if (store.hasMark(row, MARK.hasChanged)) return;
    store.mark(row, MARK.hasChanged);
    this.#changed[store.family].push(row);
  }

  /** The agent has told what numbers stand for: records that lack it are handed on again. */
  noteRules(): void {
    for (const store of this.#stores)
      for (const row of this.#incomplete[store.family]) {
        if (!this.#isComplete(store, row)) continue;
        this.#incomplete[store.family].delete(row);
        this.markChanged(store, row);
      }
  }

  /** The records that are new or have changed since the last call. */
  flush(now: number): FollowedFlows {
    this.#flushes += 1;
    for (const store of this.#stores) {
      this.#settle(store, now);
      this.#handOnChanged(store, now);
    }
    return this.#take();
  }

  /** As `flush`, with all that waits for names, and all sums: nothing follows. In parts, since there may be very many. */
  *flushLast(now: number): Generator<FollowedFlows> {
    // What is still in the table is found there again.
    for (const store of this.#stores)
      for (const row of this.#settling[store.family])
        if (store.hasMark(row, MARK.hasEnded) || !store.hasMark(row, MARK.found)) this.#handOnFirst(store, row);
    yield this.flush(now);
    for (const store of this.#stores)
      for (let row = 0; row < store.end; row++) {
        if (!store.isUsed(row)) continue;
        if (store.hasMark(row, MARK.isPut)) this.#sumPut(store, row);
        else if (!store.hasMark(row, MARK.hasEnded)) this.putOverLimit(store, row, now);
        if (this.#overLimit.length + this.#sums.length >= PART_OF_LAST) yield this.#take();
      }
    yield this.#take();
  }

  #take(): FollowedFlows {
    const flows = { records: this.#records, overLimit: this.#overLimit, sums: this.#sums };
    this.#records = [];
    this.#overLimit = [];
    this.#sums = [];
    return flows;
  }

  #nameEnds(store: ConnectionStore, row: number, how: { readonly now: number; readonly asking: Asking }): boolean {
    return nameEnds({ store, row }, { names: this.options.names, texts: this.options.texts, ...how });
  }

  #isComplete(store: ConnectionStore, row: number): boolean {
    store.copyLabel(row, this.#scratchLabel);
    return !this.options.rules.of(this.#scratchLabel).isIncomplete;
  }

  /** Hands on what has its names; looks at names a last time when they change no more. */
  #settle(store: ConnectionStore, now: number): void {
    const waiting = this.#settling[store.family];
    let kept = 0;
    for (const row of waiting) {
      // The clock may have been set back meanwhile.
      const age = Math.abs(now - (store.heardAt[row] ?? 0));
      this.#settleRow(store, row, { age, now });
      if (store.hasMark(row, MARK.settling)) waiting[kept++] = row;
    }
    waiting.length = kept;
  }

  #settleRow(store: ConnectionStore, row: number, { age, now }: { readonly age: number; readonly now: number }): void {
    const isFormer = this.#former[store.family].has(row);
    if (!store.hasMark(row, MARK.isHandedOn)) {
      if (!store.hasMark(row, MARK.isNamed)) this.ask(store, row, now);
      const isDue = store.hasMark(row, MARK.isNamed) || age >= NAMES_MILLISECONDS;
      if (!isDue || (store.hasMark(row, MARK.found) && !isFormer && !this.options.mayBeginFound(now))) return;
      this.#handOnFirst(store, row);
    }
    if (!store.hasMark(row, MARK.overLimit)) {
      if (age < SETTLED_MILLISECONDS) return;
      const isTurn = (this.#flushes + row) % FLUSHES_OF_WAITING === 0;
      if (!isTurn && this.#settling[store.family].length > MANY_WAIT) return;
      const isNamed = isFormer || this.#nameAgain(store, row, now);
      const isWaiting = !isNamed || this.#incomplete[store.family].has(row);
      if (isWaiting && age < ANSWERED_MILLISECONDS) return;
      if (!isNamed) this.namesUnknown += 1;
    }
    store.unmark(row, MARK.settling);
    if (!store.hasMark(row, MARK.hasChanged)) this.#sumPut(store, row);
    this.#freeIfDone(store, row);
  }

  #handOnFirst(store: ConnectionStore, row: number): void {
    if (store.hasMark(row, MARK.isHandedOn)) return;
    store.mark(row, MARK.isHandedOn);
    if (!store.hasMark(row, MARK.overLimit)) this.markChanged(store, row);
  }

  /** What the roll-ups lack of a record that was handed on. */
  #sumPut(store: ConnectionStore, row: number): void {
    if (!store.hasMark(row, MARK.isPut)) return;
    const added = store.takeSum(row);
    if (added.flows + added.packets + added.bytes > 0) this.#sums.push({ record: this.#recordOf(store, row), added });
  }

  /** Roll-ups cannot be corrected: who is outside at first may be a new pod. */
  #hasSureNames(store: ConnectionStore, row: number): boolean {
    if (!store.hasMark(row, MARK.settling)) return true;
    return [store.sources[row], store.destinations[row], store.backends[row]].every(
      (end) => end?.shown.kind !== "outside",
    );
  }

  /** A record whose names have changed is handed on again. Returns whether all are known. */
  #nameAgain(store: ConnectionStore, row: number, now: number): boolean {
    const [source, destination, backend] = [store.sources[row], store.destinations[row], store.backends[row]];
    const isNamed = this.#nameEnds(store, row, { now, asking: "asks" });
    if (source !== store.sources[row] || destination !== store.destinations[row] || backend !== store.backends[row])
      this.markChanged(store, row);
    return isNamed;
  }

  #handOnChanged(store: ConnectionStore, now: number): void {
    const changed = this.#changed[store.family];
    let kept = 0;
    for (const row of changed) {
      // Its first record is still to come, and will have the change.
      if (!store.hasMark(row, MARK.isHandedOn)) {
        changed[kept++] = row;
        continue;
      }
      store.unmark(row, MARK.hasChanged);
      this.#handOn(store, row, now);
      this.#freeIfDone(store, row);
    }
    changed.length = kept;
  }

  #handOn(store: ConnectionStore, row: number, now: number): void {
    if (store.hasMark(row, MARK.overLimit)) {
      if (!store.hasMark(row, MARK.hasEnded)) return;
      this.putOverLimit(store, row, now);
      return;
    }
    if (this.#isComplete(store, row) || this.#former[store.family].has(row)) this.#incomplete[store.family].delete(row);
    else this.#incomplete[store.family].add(row);
    const isNew = !store.hasMark(row, MARK.isPut);
    store.mark(row, MARK.isPut);
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
    store.copyLabel(row, this.#scratchLabel);
    const isRelated = store.hasMark(row, MARK.related);
    return recordOf(
      { store, row },
      {
        node: this.options.node(),
        texts: this.options.texts,
        meaning: this.options.rules.of(this.#scratchLabel),
        id: this.idOf(store, row),
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

  get #stores(): readonly ConnectionStore[] {
    return [this.options.stores[4], this.options.stores[6]];
  }
}
