/**
 * The collector of flows: a process of its own, started by the agent.
 *
 *   kernel: events of connections ─┐
 *   kernel: denied packets ────────┼─> follow ─> records ─> sink (history, JSON lines, metrics, those who ask)
 *   kernel: the table, each minute ┘     │
 *   agent: rules, names, resources ──────┘
 *
 * It reads in rounds, a part of what has arrived each time, so that whoever asks gets an answer also during a flood.
 */
import { setPriority } from "node:os";
import type { Environment } from "../../../cni/environment.ts";
import { runDirectoryOf } from "../../../config/run-directory.ts";
import { describeFailure } from "../../../errors.ts";
import { FLOW_GROUP } from "../../../firewall/policy-table.ts";
import { trackConnections } from "../../../firewall/tracking-table.ts";
import type { CollectorSettings, FromCollector, ToCollector } from "../../../flows/collector-messages.ts";
import type { FlowLosses } from "../../../flows/flow-record.ts";
import type { LinkAccess } from "../../../flows/link-messages.ts";
import { type ConnectionEvents, listenToConnections, readConnectionTable } from "../../../linux/conntrack-events.ts";
import type { TrackedMessage } from "../../../linux/conntrack-message.ts";
import { isKernelError } from "../../../linux/kernel-error.ts";
import { type GroupListener, listenToGroup } from "../../../linux/log-group.ts";
import { type Drained, hasLost, hasMore } from "../../../linux/netlink-group.ts";
import { readWholeHead } from "../../../linux/packet-head.ts";
import { aborted, nextTurn } from "../../../timers.ts";
import type { Say } from "../../agent-process.ts";
import type { FlowSink, SeenFlow } from "../flow-sink.ts";
import { accountingPath, enableConnectionAccounting } from "./connection-accounting.ts";
import { DeniedPackets } from "./denied-packets.ts";
import { AddressTexts, EndNames } from "./end-names.ts";
import { FlowIds } from "./flow-ids.ts";
import { ConnectionFollower, DEFAULT_LIMITS, type FollowLimits } from "./follow-connections.ts";
import type { FollowedFlows } from "./record-queue.ts";
import { RuleDecisions } from "./rule-decisions.ts";

/** What keeps and serves the records. */
export interface CollectorSink extends FlowSink {
  configure(settings: CollectorSettings): void;
  /** All losses, also those that it was told, and metrics as text in the format of Prometheus. `open`: connections that are followed. */
  facts(open: number): { readonly losses: FlowLosses; readonly metrics: string };
  /** Writes what is not written yet. */
  close(): void | Promise<void>;
}

export interface CollectorOptions {
  readonly environment: Environment;
  readonly say: Say;
  /** Messages of the agent. Ends when the agent does. */
  readonly messages: AsyncIterable<ToCollector>;
  readonly send: (message: FromCollector) => void;
  readonly openSink: (settings: CollectorSettings) => CollectorSink | Promise<CollectorSink>;
  /** Where the controllers are, whose questions the sink answers. */
  readonly setLink?: (access: LinkAccess | undefined) => void;
  readonly clock?: CollectorClock;
  readonly limits?: Partial<CollectorLimits>;
}

export interface CollectorClock {
  /** Milliseconds since 1970. It may be set at any time. */
  readonly now: () => number;
  /** Milliseconds that never go back. */
  readonly elapsed: () => number;
}

const SYSTEM: CollectorClock = { now: Date.now, elapsed: () => performance.now() };

export interface CollectorLimits extends FollowLimits {
  /** Of the socket of events. The kernel takes memory only for what has not been read. */
  readonly eventBufferBytes: number;
  readonly lookMilliseconds: number;
}

/** 100,000 events a second, each of about a kilobyte, while the process does something else for a quarter of a second. */
const LIMITS: CollectorLimits = { ...DEFAULT_LIMITS, eventBufferBytes: 32 * 1024 * 1024, lookMilliseconds: 60_000 };
const NAME_LIMITS = { most: 20_000, mostAskedPerSecond: 2_000 };
const MOST_TEXTS = 50_000;
/** Events that are read before other work gets a turn: some milliseconds. */
const MOST_EVENTS = 4_000;
/** At the end: as many as the buffer has. */
const LAST_ROUNDS = 50;
const QUIET_MILLISECONDS = 50;
const BUSY_MILLISECONDS = 5;
/** From this many in one round on, the next round comes soon. */
const BUSY_EVENTS = 500;
const FLUSH_MILLISECONDS = 250;
const ASK_MILLISECONDS = 100;
const FACTS_MILLISECONDS = 1_000;
/** The names of this node arrive before the first look at the table. */
const FIRST_LOOK_MILLISECONDS = 3_000;
/** After events were lost: not more often. */
const REPEATED_LOOK_MILLISECONDS = 15_000;
const FIRST_REPEATED_LOOK_MILLISECONDS = 500;
/** Records of the previous collector that are continued: they take 2 kB each. The others are counted, and get new records. */
const MOST_FORMER = 20_000;
const WITHOUT_CONNECTIONS =
  "This kernel does not tell the connections of denied packets (CONFIG_NETFILTER_NETLINK_GLUE_CT is off): of a denied connection to a Service, a host port or a floating IP flows name the backend only, and no rules that accepted it before";
/** Policy and calls come first. */
const NICENESS = 5;

/** Until the agent ends or says nothing any more, or the signal is aborted. */
export async function collectFlows(options: CollectorOptions, signal: AbortSignal): Promise<void> {
  setPriority(NICENESS);
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const collector = new Collector(options, either);
  options.send({ kind: "ready" });
  try {
    await Promise.race([collector.hear(), collector.failed, aborted(either)]);
  } finally {
    stop.abort();
    await collector.close();
  }
}

class Collector {
  readonly #names = new EndNames(NAME_LIMITS);
  readonly #rules = new RuleDecisions();
  readonly #limits: CollectorLimits;
  readonly #clock: CollectorClock;
  readonly #failure = Promise.withResolvers<never>();
  #work: CollectorWork | undefined;
  #running: Promise<unknown> = Promise.resolve();
  #labelsSince: number | undefined;

  constructor(
    private readonly options: CollectorOptions,
    private readonly signal: AbortSignal,
  ) {
    this.#limits = { ...LIMITS, ...options.limits };
    this.#clock = options.clock ?? SYSTEM;
    this.#failure.promise.catch(() => {});
  }

  /** Rejects if a part of the work has failed. */
  get failed(): Promise<never> {
    return this.#failure.promise;
  }

  async hear(): Promise<void> {
    for await (const message of this.options.messages) {
      if (this.signal.aborted) return;
      await this.#take(message);
    }
  }

  async close(): Promise<void> {
    await this.#running.catch(() => {});
    await this.#work?.close();
  }

  async #take(message: ToCollector): Promise<void> {
    switch (message.kind) {
      case "settings":
        await this.#configure(message.settings);
        break;
      case "rules":
        this.#rules.learn(message.rules);
        this.#work?.follower.noteRules();
        break;
      case "rules gone":
        this.#rules.forget(message.numbers);
        break;
      case "rules with requests":
        this.#rules.learnWithRequests(message.numbers);
        break;
      case "labels written":
        this.#labelsSince = message.since;
        this.#work?.follower.noteLabelsSince(message.since);
        break;
      case "names":
        this.#names.learn(message.names);
        break;
      case "resources":
        this.#work?.sink.putResources(message.resources, this.#clock.now());
        break;
      case "denied":
        this.#work?.learnDenied(message.counts);
        break;
      case "link":
        this.options.setLink?.(message.access);
        break;
    }
  }

  async #configure(settings: CollectorSettings): Promise<void> {
    if (this.#work !== undefined) {
      this.#work.configure(settings);
      return;
    }
    const { options } = this;
    const sink = await options.openSink(settings);
    const [names, rules] = [this.#names, this.#rules];
    const ids = new FlowIds();
    const texts = new AddressTexts(MOST_TEXTS);
    const follower = new ConnectionFollower(settings, names, rules, texts, ids, this.#limits);
    if (this.#labelsSince !== undefined) follower.noteLabelsSince(this.#labelsSince);
    follower.adopt(sink.openRecords(MOST_FORMER), sink.summedUntil?.());
    const denied = new DeniedPackets(settings.node, ids, { names, rules, texts });
    const parts = { follower, denied, names, sink, clock: this.#clock, limits: this.#limits };
    this.#work = new CollectorWork(options, parts);
    this.#running = this.#work.run(this.signal).catch((failure) => {
      this.#failure.reject(failure);
    });
  }
}

interface WorkParts {
  readonly follower: ConnectionFollower;
  readonly denied: DeniedPackets;
  readonly names: EndNames;
  readonly sink: CollectorSink;
  readonly clock: CollectorClock;
  readonly limits: CollectorLimits;
}

class CollectorWork {
  readonly follower: ConnectionFollower;
  readonly sink: CollectorSink;
  readonly #now: () => number;
  /** What is due, and how long ago something was: not by a clock that may be set. */
  readonly #elapsed: () => number;
  readonly #events: ConnectionEvents;
  #group: GroupListener | undefined;
  #tracking: Disposable | undefined;
  #canTrack = true;
  #eventCount = 0;
  #lookAt: number;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #isLooking = false;
  #saidLosses = "";

  constructor(
    private readonly options: Pick<CollectorOptions, "environment" | "say" | "send">,
    private readonly parts: WorkParts,
  ) {
    this.follower = parts.follower;
    this.sink = parts.sink;
    this.#now = parts.clock.now;
    this.#elapsed = parts.clock.elapsed;
    enableConnectionAccounting(accountingPath(runDirectoryOf(options.environment)));
    this.#events = listenToConnections(parts.limits.eventBufferBytes);
    this.#track();
    this.#lookAt = this.#elapsed() + FIRST_LOOK_MILLISECONDS;
  }

  configure(settings: CollectorSettings): void {
    this.follower.configure(settings);
    this.sink.configure(settings);
  }

  learnDenied(counts: readonly (readonly [comment: string, packets: number])[]): void {
    this.parts.denied.learnCounts(counts, this.#now());
  }

  /** Rejects if a part fails; the others end with the signal. */
  async run(signal: AbortSignal): Promise<void> {
    const loops = [
      this.#read(signal),
      this.#every(FLUSH_MILLISECONDS, signal, () => {
        const now = this.#now();
        this.#flush(this.follower.flush(now), this.parts.denied.flush(now));
      }),
      this.#every(ASK_MILLISECONDS, signal, () => this.#ask()),
      this.#every(FACTS_MILLISECONDS, signal, () => this.#tellFacts()),
      this.#lookNowAndThen(signal),
    ];
    await Promise.all(loops);
  }

  async close(): Promise<void> {
    try {
      for (let round = 0; round < LAST_ROUNDS && hasMore(this.#readEvents()); round++);
      this.#readDenied();
      const now = this.#now();
      this.#flush({ records: this.parts.denied.flushLast(now), overLimit: [], sums: [] });
      for (const followed of this.follower.flushLast(now)) this.#flush(followed);
      this.#noteLosses();
      await this.sink.close();
    } finally {
      this.#events.close();
      this.#group?.close();
      this.#tracking?.[Symbol.dispose]();
    }
  }

  async #read(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const before = this.#eventCount;
      const drained = this.#readEvents();
      this.#readDenied();
      const isBusy = this.#eventCount - before >= BUSY_EVENTS;
      if (hasMore(drained)) await nextTurn();
      else await Bun.sleep(isBusy ? BUSY_MILLISECONDS : QUIET_MILLISECONDS);
    }
  }

  #readEvents(): Drained {
    const now = this.#now();
    const { follower } = this;
    const drained = this.#events.read(
      {
        begins: (message: TrackedMessage) => {
          this.#eventCount += 1;
          follower.begins(message, now);
        },
        ended: (message: TrackedMessage) => {
          this.#eventCount += 1;
          follower.ended(message, now);
        },
      },
      MOST_EVENTS,
    );
    if (hasLost(drained)) this.#noteLoss(now);
    return drained;
  }

  /** What was lost is found in the table, as long as it is there. */
  #noteLoss(now: number): void {
    this.follower.noteOverrun(now);
    this.#lookAt = Math.min(
      this.#lookAt,
      Math.max(this.#elapsed() + FIRST_REPEATED_LOOK_MILLISECONDS, this.#lookedAt + REPEATED_LOOK_MILLISECONDS),
    );
  }

  #readDenied(): void {
    const group = this.#openGroup();
    if (group === undefined) return;
    const now = this.#now();
    const reading = group.read();
    if (reading.hasLost) this.follower.noteOverrun(now);
    for (const { bytes, ...packet } of reading.packets) {
      const head = readWholeHead(bytes);
      if (head !== undefined) this.parts.denied.add({ head, ...packet }, now);
    }
  }

  /** A group has one listener: somebody else may have it, or a collector that is still ending. */
  #openGroup(): GroupListener | undefined {
    if (this.#group !== undefined) return this.#group;
    const now = this.#elapsed();
    if (now < this.#groupTriedAt + FACTS_MILLISECONDS) return undefined;
    this.#groupTriedAt = now;
    try {
      this.#group = listenToGroup(FLOW_GROUP, { withConnections: true });
      this.#hasSaidGroup = false;
      if (!this.#group.hasConnections) this.options.say(WITHOUT_CONNECTIONS, {}, "INFO");
    } catch (failure) {
      if (!isKernelError(failure, "EPERM") && !isKernelError(failure, "EBUSY")) throw failure;
      if (!this.#hasSaidGroup)
        this.options.say(
          `Cannot record denied packets: another process listens to log group ${FLOW_GROUP}`,
          {},
          "WARNING",
        );
      this.#hasSaidGroup = true;
    }
    return this.#group;
  }

  /** The collector before this one may still be ending. */
  #track(): void {
    if (this.#tracking !== undefined || !this.#canTrack) return;
    try {
      this.#tracking = trackConnections();
    } catch (failure) {
      this.#canTrack = false;
      const message = "Cannot make the kernel track connections, so flows are recorded only if something else does";
      this.options.say(`${message}: ${describeFailure(failure)}`, {}, "WARNING");
    }
  }

  #groupTriedAt = Number.NEGATIVE_INFINITY;
  #hasSaidGroup = false;

  #flush({ records, overLimit, sums }: FollowedFlows, denied: readonly SeenFlow[] = []): void {
    if (records.length + denied.length + overLimit.length + sums.length === 0) return;
    this.sink.put([...records, ...denied], overLimit, sums);
  }

  #ask(): void {
    const questions = this.parts.names.takeQuestions();
    if (questions.length > 0) this.options.send({ kind: "who", keys: [...questions] });
    const forgotten = this.parts.names.takeForgotten();
    if (forgotten.length > 0) this.options.send({ kind: "forget", keys: [...forgotten] });
  }

  #tellFacts(): void {
    this.#track();
    this.#noteLosses();
    this.options.send({ kind: "facts", ...this.sink.facts(this.follower.size) });
  }

  #noteLosses(): void {
    const suppressed = this.parts.denied.takeSuppressed(this.#now()) + this.parts.denied.takeLost();
    if (suppressed > 0) this.follower.noteSuppressed(suppressed);
    this.follower.noteNamesUnknown(this.parts.denied.takeNamesUnknown());
    const losses = this.follower.losses;
    const said = JSON.stringify(losses);
    if (said !== this.#saidLosses) this.sink.noteLosses(losses);
    this.#saidLosses = said;
  }

  async #lookNowAndThen(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await Bun.sleep(ASK_MILLISECONDS);
      if (signal.aborted || this.#elapsed() < this.#lookAt) continue;
      this.#lookAt = this.#elapsed() + this.parts.limits.lookMilliseconds;
      await this.#look(signal);
    }
  }

  /** One look at the whole table, with turns for other work. */
  async #look(signal: AbortSignal): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      await this.#readTable(signal);
    } finally {
      this.#isLooking = false;
    }
  }

  async #readTable(signal: AbortSignal): Promise<void> {
    // Another program may have switched it off.
    enableConnectionAccounting(accountingPath(runDirectoryOf(this.options.environment)));
    const since = this.#now();
    this.follower.beginLook(since);
    await readConnectionTable({
      entry: (message) => this.follower.entry(message, this.#now()),
      pause: async () => {
        signal.throwIfAborted();
        this.#readEvents();
        await nextTurn();
      },
    });
    const numbers = this.follower.endLook(this.#now());
    this.#lookedAt = this.#elapsed();
    this.options.send({ kind: "numbers in use", since, numbers: [...numbers] });
  }

  async #every(milliseconds: number, signal: AbortSignal, work: () => void): Promise<void> {
    while (!signal.aborted) {
      await Bun.sleep(milliseconds);
      if (!signal.aborted) work();
    }
  }
}
