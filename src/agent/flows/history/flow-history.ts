/**
 * The history of a node: takes what the collector has seen, answers questions, and tells followers.
 *
 *   put ──> followers, JSON lines at once
 *     └───> queue ── once a second ──> the file (flow-store.ts): records, roll-ups, resources
 *
 * A file that cannot be written never stops the collector: what is lost is counted, and the next second tries again. A damaged
 * file is put aside, and an empty one takes its place.
 */
import { SYSTEM_CLOCK } from "../../../datastore/replica/clock.ts";
import type { FlowAnswer, FlowExplanation, FlowQuestion, FlowSource } from "../../../flows/flow-answer.ts";
import { type FlowMatcher, FlowQueryError } from "../../../flows/flow-query.ts";
import type { FlowLosses, FlowRecord } from "../../../flows/flow-record.ts";
import { visibleMatcher } from "../../../flows/visible-flows.ts";
import { onceEach } from "../../../log/once-each.ts";
import { quoted } from "../../../quote.ts";
import type { CollectorLosses, FlowSink, OpenRecords, SeenFlow, SeenResource, SummedFlow } from "../flow-sink.ts";
import { answerRollups } from "./answer-rollups.ts";
import { FlowLog } from "./flow-log.ts";
import { FlowCounters, type FlowFacts } from "./flow-metrics.ts";
import { FlowStore, historyPath, isDamage, MOST_ROWS, ROLLUP_AGES, type StoreLimits, setAside } from "./flow-store.ts";
import type { Moment } from "./history-age.ts";
import { addLosses, type CountedLosses } from "./losses.ts";
import { findRecords } from "./read-records.ts";
import type { ResourceState } from "./resource-states.ts";
import { PendingSums } from "./rollups.ts";
import { StagedFlows } from "./staged-flows.ts";

export interface HistorySettings {
  readonly limits: StoreLimits;
  /** JSON lines; absent: none. */
  readonly logFile?: string;
}

export interface HistoryOptions {
  /** Only root may read it; created if it is missing. */
  readonly directory: string;
  readonly node: string;
  readonly settings: HistorySettings;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds since the machine started. */
  readonly elapsed: () => number;
  readonly warn: (message: string) => void;
  /** Of a record that is in the history. Absent: nothing is explained. */
  readonly explain?: (found: ExplainedFlow) => FlowExplanation;
}

export interface ExplainedFlow {
  readonly record: FlowRecord;
  /** As they were when it began; `undefined`: not known any more. */
  readonly resources: readonly ResourceState[] | undefined;
  /** Records of its ends in the datastore, as JSON. */
  readonly endpoints: readonly string[];
}

const WRITE_MILLISECONDS = 1_000;
/** Without records: how exactly the time without a collector is known. */
const ALIVE_MILLISECONDS = 5_000;
const OPEN_AGAIN_MILLISECONDS = 5_000;
const SWEEP_MILLISECONDS = 60_000;
/** By then the agent has told all resources. */
const CONFIRMED_MILLISECONDS = 60_000;
/** Of records that wait to be stored. */
const MOST_QUEUED = 50_000;
const MOST_QUEUED_RESOURCES = 50_000;
/** Of records that a follower has not read. */
const MOST_UNREAD = 2_000;
const LOSSES_MILLISECONDS = 10_000;

const NO_LOSSES: CollectorLosses = {
  kernelOverruns: 0,
  rulesUnknown: 0,
  overLimit: 0,
  overCapacity: 0,
  deniedSuppressed: 0,
  namesUnknown: 0,
};

interface Follower {
  readonly matches: FlowMatcher;
  unread: FlowRecord[];
  missed: number;
  wake: () => void;
}

export class FlowHistory implements FlowSink, FlowSource {
  private readonly followers = new Set<Follower>();
  private readonly log: FlowLog;
  private readonly counters = new FlowCounters();
  private readonly complaints;
  private store: FlowStore | undefined;
  /** Why there is none, in words. */
  private failure = "the history is not open yet";
  private settings: HistorySettings;
  private queue: SeenFlow[] = [];
  private resources: { readonly resources: readonly SeenResource[]; readonly since: number }[] = [];
  private queuedResources = 0;
  private sums: PendingSums;
  private readonly staged: StagedFlows;
  private notStored = 0;
  private collectorLosses: CollectorLosses = NO_LOSSES;
  private readonly stopping = new AbortController();
  private readonly opened: number;
  /** By the time since the machine started. */
  private due = { alive: 0, open: 0, sweep: 0 };
  private running: Promise<void> | undefined;

  /** Never throws: a file that cannot be opened is tried again. */
  constructor(private readonly options: HistoryOptions) {
    this.settings = options.settings;
    this.sums = new PendingSums(options.settings.limits.bytes);
    this.complaints = onceEach(options.warn);
    this.log = new FlowLog(options.settings.logFile, () => new Date(options.now()), options.warn);
    this.opened = options.elapsed();
    this.staged = new StagedFlows({ resources: () => this.toldResources(), elapsed: options.elapsed });
    this.openStore();
    this.due.sweep = this.opened + SWEEP_MILLISECONDS;
    this.running = this.run();
  }

  /** Of this collector. */
  get losses(): FlowLosses {
    return { ...this.ownLosses, withoutCollector: this.withoutCollector };
  }

  /** Of earlier collectors too: the history has their records. */
  private get allLosses(): FlowLosses {
    const former = this.withStore((store) => store.formerLosses());
    const all = former === undefined ? this.ownLosses : addLosses(former, this.ownLosses);
    return { ...all, withoutCollector: this.withoutCollector };
  }

  private get ownLosses(): CountedLosses {
    return {
      ...this.collectorLosses,
      notStored: this.notStored + this.sums.leftOut,
      notLogged: this.log.notLogged,
      ...(this.staged.notJudged === 0 ? {} : { stagedNotJudged: this.staged.notJudged }),
    };
  }

  private get withoutCollector(): number {
    return this.withStore((store) => store.withoutCollector()) ?? 0;
  }

  put(seen: readonly SeenFlow[], overLimit: readonly FlowRecord[], sums: readonly SummedFlow[] = []): void {
    const records = this.staged.isIdle ? seen : seen.map((each) => this.staged.judged(each));
    for (const { record, added } of sums) this.sums.add(record, added);
    for (const { record } of records) {
      this.log.append(record);
      for (const follower of this.followers) tell(follower, record);
    }
    const room = MOST_QUEUED - this.queue.length;
    for (const each of room >= records.length ? records : records.slice(0, room)) this.queue.push(each);
    this.notStored += Math.max(0, records.length - room);
    for (const record of overLimit) {
      this.counters.begun(record);
      if (record.state === "ended") this.counters.ended(record);
      const { sent, received } = record;
      this.sums.add(record, { flows: 1, packets: sent.packets + received.packets, bytes: sent.bytes + received.bytes });
    }
  }

  putResources(resources: readonly SeenResource[], since: number): void {
    this.staged.put(resources);
    this.queuedResources += resources.length;
    if (this.queuedResources <= MOST_QUEUED_RESOURCES) this.resources.push({ resources, since });
    else this.notStored += resources.length;
  }

  noteLosses(losses: CollectorLosses): void {
    this.collectorLosses = losses;
  }

  openRecords(most: number): OpenRecords {
    return this.withStore((store) => store.openRecords(most)) ?? { records: [], leftOut: 0 };
  }

  summedUntil(): number | undefined {
    return this.withStore((store) => store.formerAlive);
  }

  set(settings: HistorySettings): void {
    this.settings = settings;
    this.log.writeTo(settings.logFile);
    this.withStore((store) => store.setLimits(settings.limits));
  }

  /** For `facts` of the collector: the text format of Prometheus. */
  metrics(facts: FlowFacts): string {
    const history = this.withStore((store) => {
      return { bytes: store.bytes, milliseconds: store.recordsAge(this.moment()) };
    });
    return this.counters.text({ ...facts, ...(history === undefined ? {} : { history }) });
  }

  answer(question: FlowQuestion, signal: AbortSignal): AsyncIterable<FlowAnswer> {
    const either = AbortSignal.any([signal, this.stopping.signal]);
    switch (question.kind) {
      case "flows":
        return this.answerFlows(question, either);
      case "rollups":
        return this.answerRest((store) => answerRollups(store, question, { node: this.options.node, signal: either }), {
          ...question.query,
          age: ROLLUP_AGES * this.settings.limits.milliseconds,
        });
      case "explanation":
        return this.answerRest((store) => this.explain(store, question.id, either));
    }
  }

  /** Resources as they were, by kind; `undefined`: not known any more. */
  resourcesAt(time: number): readonly ResourceState[] | undefined {
    return this.withStore((store) => store.resources.at(time));
  }

  /** All that the agent has told until now, for the judge of staged policies. */
  private toldResources(): readonly SeenResource[] | undefined {
    const stored = this.withStore((store) => store.resources.current());
    return stored && [...stored, ...this.resources.flatMap(({ resources }) => resources)];
  }

  /** Stores what waits; followers are told that it is over. */
  async close(): Promise<void> {
    this.stopping.abort();
    await this.running;
    await this.write();
    this.withStore((store) => store.setLosses(this.ownLosses));
    this.withStore((store) => store.close(this.moment()));
    this.store = undefined;
    this.log.close();
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      await SYSTEM_CLOCK.wait(WRITE_MILLISECONDS, signal);
      if (!signal.aborted) await this.turn();
    }
  }

  /** What is done once a second. */
  private async turn(): Promise<void> {
    const moment = this.moment();
    const { elapsed } = moment;
    if (this.store === undefined && elapsed >= this.due.open) this.openStore();
    this.withStore((store) => store.setLosses(this.ownLosses));
    await this.write();
    this.withStore((store) => {
      for (let round = 0; round < TIDY_ROUNDS && store.tidy(moment); round++);
      if (elapsed >= this.due.alive) store.noteAlive(moment);
      if (elapsed - this.opened >= CONFIRMED_MILLISECONDS) store.removeUnconfirmedResources();
      if (elapsed < this.due.sweep) return;
      store.sweep(moment);
      this.due.sweep = elapsed + SWEEP_MILLISECONDS;
    });
    if (elapsed >= this.due.alive) this.due.alive = elapsed + ALIVE_MILLISECONDS;
  }

  private moment(): Moment {
    const { now, elapsed } = this.options;
    return { now: now(), elapsed: elapsed() };
  }

  private async write(): Promise<void> {
    const { queue, resources } = this;
    this.queue = [];
    this.resources = [];
    this.queuedResources = 0;
    if (queue.length === 0 && resources.length === 0 && this.sums.isEmpty) return;
    for (let start = 0; start === 0 || start < queue.length; start += MOST_ROWS) {
      if (start > 0) await Bun.sleep(0);
      this.writePart(queue.slice(start, start + MOST_ROWS), start === 0 ? resources : []);
    }
  }

  private writePart(records: readonly SeenFlow[], resources: readonly (typeof this.resources)[number][]): void {
    const flows = records.length + this.sums.flows;
    const stored = this.withStore((store) =>
      store.write({ records, resources, sums: this.sums, moment: this.moment() }),
    );
    if (stored === undefined) {
      this.sums.take();
      this.notStored += flows + resources.reduce((sum, each) => sum + each.resources.length, 0);
      return;
    }
    this.complaints.forget();
    for (const record of stored.begun) this.counters.begun(record);
    for (const record of stored.ended) this.counters.ended(record);
    this.counters.denied(stored.deniedPackets);
  }

  private async *answerFlows(
    question: Extract<FlowQuestion, { readonly kind: "flows" }>,
    signal: AbortSignal,
  ): AsyncIterable<FlowAnswer> {
    const { follow } = question;
    const follower: Follower = { matches: visibleMatcher(question), unread: [], missed: 0, wake: () => {} };
    if (follow) this.followers.add(follower);
    try {
      yield* this.answerRest(async function* (store) {
        for await (const flow of findRecords(store, question, signal)) yield { flow };
      }, question.query);
      while (follow && !signal.aborted) {
        yield* this.unreadOf(follower);
        await untilWoken(follower, signal);
      }
    } finally {
      this.followers.delete(follower);
    }
  }

  private async *unreadOf(follower: Follower): AsyncIterable<FlowAnswer> {
    const { unread, missed } = follower;
    follower.unread = [];
    follower.missed = 0;
    for (const flow of unread) yield { flow };
    const { node } = this.options;
    if (missed > 0)
      yield { problem: { node, message: `${missed} changes of flows are left out: the reader is too slow` } };
    yield { losses: { node, ...this.allLosses } };
  }

  /** What a store answers, problems of the history, and the losses. */
  private async *answerRest(
    answers: (store: FlowStore) => AsyncIterable<FlowAnswer>,
    { since = 0, age = this.settings.limits.milliseconds }: { readonly since?: number; readonly age?: number } = {},
  ): AsyncIterable<FlowAnswer> {
    const { node, now } = this.options;
    await this.write();
    const { store } = this;
    if (store === undefined) yield { problem: { node, message: `there is no history: ${this.failure}` } };
    else {
      try {
        for await (const answer of answers(store)) yield answer;
      } catch (failure) {
        if (failure instanceof FlowQueryError || isAbort(failure)) throw failure;
        if (isDamage(failure)) this.replace(failure);
        yield { problem: { node, message: `the history cannot be read: ${reasonOf(failure)}` } };
      }
    }
    const damaged = this.withStore((present) => present.noted(DAMAGED));
    // What was before is not asked for, or would not be kept any more.
    if (damaged !== undefined && damaged > Math.max(since, now() - age))
      yield { problem: { node, message: `the history begins at ${new Date(damaged).toISOString()}: it was damaged` } };
    yield { losses: { node, ...this.allLosses } };
  }

  private async *explain(store: FlowStore, id: string, signal: AbortSignal): AsyncIterable<FlowAnswer> {
    const { explain, node } = this.options;
    for await (const record of findRecords(store, { query: { id } }, signal)) {
      if (explain === undefined) continue;
      const found = { record, resources: store.resources.at(record.start), endpoints: store.rows.endpointsOf(id) };
      yield { explanation: explain(found) };
      return;
    }
    yield { problem: { node, message: `there is no flow ${quoted(id)} in the history` } };
  }

  private openStore(): void {
    const { directory, node, elapsed } = this.options;
    this.due.open = elapsed() + OPEN_AGAIN_MILLISECONDS;
    try {
      this.store = FlowStore.open({ directory, node, limits: this.settings.limits }, this.moment());
    } catch (failure) {
      if (isDamage(failure)) this.replace(failure);
      else this.fail(failure);
    }
  }

  /** Puts the file aside and begins again. */
  private replace(reason: unknown): void {
    const { directory, node, now, warn } = this.options;
    this.store?.abandon();
    this.store = undefined;
    try {
      setAside(directory);
      const aside = `it is kept as ${quoted(`${historyPath(directory)}.damaged`)}`;
      warn(`The history of flows cannot be read and begins again; ${aside}: ${reasonOf(reason)}`);
      this.store = FlowStore.open({ directory, node, limits: this.settings.limits }, this.moment());
      this.store.note(DAMAGED, now());
    } catch (failure) {
      this.fail(failure);
    }
  }

  /** `undefined`: there is no history, or it failed. */
  private withStore<Result>(work: (store: FlowStore) => Result): Result | undefined {
    const { store } = this;
    if (store === undefined) return undefined;
    try {
      return work(store);
    } catch (failure) {
      if (isDamage(failure)) this.replace(failure);
      else this.fail(failure);
      return undefined;
    }
  }

  private fail(failure: unknown): void {
    this.failure = reasonOf(failure);
    this.complaints.report(`Cannot store flows: ${this.failure}; those that are lost are counted`);
  }
}

/** Note in the store: when it took the place of a damaged one. */
const DAMAGED = "damaged";
const TIDY_ROUNDS = 5;

function tell(follower: Follower, record: FlowRecord): void {
  if (!follower.matches(record)) return;
  if (follower.unread.length < MOST_UNREAD) follower.unread.push(record);
  else follower.missed += 1;
  follower.wake();
}

/** Until there is something to read, and now and then to tell the losses. */
async function untilWoken(follower: Follower, signal: AbortSignal): Promise<void> {
  if (follower.unread.length > 0 || signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, LOSSES_MILLISECONDS);
  const stop = () => resolve();
  signal.addEventListener("abort", stop, { once: true });
  follower.wake = stop;
  await promise;
  clearTimeout(timer);
  signal.removeEventListener("abort", stop);
}

function isAbort(failure: unknown): boolean {
  return failure instanceof Error && failure.name === "AbortError";
}

function reasonOf(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure);
}
