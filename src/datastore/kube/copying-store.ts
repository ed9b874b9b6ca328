/**
 * The orchestrator's API for a process that stays: what every assignment reads is
 * copied by watches, and the blocks are remembered as they were last seen.
 *
 *   watches ══> pools, reservations, configuration ──┐
 *   own reads and writes ──> blocks ─────────────────┴─> decide ──> pools of new blocks as decided? ──> commit
 *   read each time ──> ClusterInformation: the lock ─┘                └─ no: decide from what is read
 *
 * Only a commit may be decided from copies, and every write in it is guarded by
 * the version of its own object: a block that another has changed since is
 * refused, forgotten, and read the next time. An error, or nothing to do, is
 * decided again from what is read. A watch may lag, so two things are never taken
 * from copies: the lock of the datastore, and the pool that a new block is
 * created in. An existing block may give one address of a pool that has just been
 * disabled, as in any commit of one object at a time (docs/decisions/orchestrator-copies.md).
 */
import type { PluginError } from "../../errors.ts";
import { blocksPrefix, IPAM_CONFIGURATION_KEY, resourcesPrefix } from "../../model/keys.ts";
import type { Answered, Datastore, Decide, Decision, Entry, OrderedChange, Transacted, Wanted } from "../datastore.ts";
import { compareKeys } from "../key-order.ts";
import type { KindSource } from "../replica/kinds.ts";
import { type Replica, type ReplicaOptions, startReplica } from "../replica.ts";
import { isMet } from "../transact-one-by-one.ts";

const POOLS = resourcesPrefix("ippools");
/** The kinds that are watched, by their prefixes. */
const WATCHED = [POOLS, resourcesPrefix("ipreservations"), IPAM_CONFIGURATION_KEY];
const BLOCKS = [blocksPrefix(4), blocksPrefix(6)];
const BLOCKS_REMEMBERED = 256;
const ASSUMED_NODES = 500;

/** What a store reports of the records that it sees. */
export interface Observer {
  /** The present state of a record, as far as a response shows it. */
  readonly saw: (entry: Entry) => void;
  /** The record is not, or no longer, as it was last seen. */
  readonly missed: (key: string) => void;
}

export interface CopyingOptions extends Pick<ReplicaOptions, "clock" | "random"> {
  /** Why records are not copied, each reason once. */
  readonly report?: (problem: string) => void;
}

/** `open`: opens the store on the API. */
export function openCopyingStore(
  open: (observer: Observer) => Datastore,
  { report = () => {}, ...options }: CopyingOptions = {},
): Datastore {
  const blocks = new BlockMemory();
  return new CopyingStore(open(blocks), blocks, { ...options, report: reportOnce(report) });
}

const REASONS_REMEMBERED = 32;

function reportOnce(report: (problem: string) => void): (problem: PluginError) => void {
  const reported = new Set<string>();
  return ({ message, details }) => {
    if (reported.has(message)) return;
    if (reported.size >= REASONS_REMEMBERED) reported.clear();
    reported.add(message);
    const remedy = details === "" ? "" : ` (${details})`;
    report(`Cannot copy records of the Kubernetes API, so that every ADD reads them: ${message}${remedy}`);
  };
}

class CopyingStore implements Datastore {
  readonly atomicity = "one object";
  readonly isOrchestratorApi = true;
  private readonly closing = new AbortController();
  private replica: Replica<Record<string, Entry>> | undefined;

  constructor(
    private readonly store: Datastore,
    private readonly blocks: BlockMemory,
    private readonly copying: Pick<ReplicaOptions, "clock" | "random" | "report">,
  ) {}

  read: Datastore["read"] = (wanted, at) => this.store.read(wanted, at);
  commit: Datastore["commit"] = (changes) => this.store.commit(changes);
  clock: NonNullable<Datastore["clock"]> = () => this.store.clock?.();
  watch: Datastore["watch"] = (prefix, from, signal) => this.store.watch(prefix, from, signal);

  async transact<Outcome>(wanted: readonly Wanted[], decide: Decide<Outcome>): Promise<Transacted<Outcome>> {
    const decided = await this.decideFromCopies(wanted, decide);
    if (decided === undefined) return this.store.transact(wanted, decide);
    const { changes, outcome, reads } = decided;
    const pools = poolsOfNewBlocks(changes);
    if (!(await this.areMetNow(pools))) return this.store.transact(wanted, decide);
    // The store protects the pool of a new block by what it is told to expect.
    const needed = changes.filter(
      (change) => change.kind !== "expect" || pools.includes(change) || !isMet(change, reads),
    );
    return { written: await this.store.commit(needed), changes, outcome };
  }

  async close(): Promise<void> {
    this.closing.abort();
    await this.replica?.ended;
    await this.store.close();
  }

  /** `undefined` if nothing is known, or the copies lead to anything but a commit. */
  private async decideFromCopies<Outcome>(
    wanted: readonly Wanted[],
    decide: Decide<Outcome>,
  ): Promise<DecidedCommit<Outcome> | undefined> {
    this.replica ??= this.startCopying();
    // A decision may record the time: a response tells it first.
    if (this.clock() === "lost") return undefined;
    // The configuration is optional, and costs nothing if there is a copy of it.
    const first = wanted.filter((each) => each.optional === undefined || (isConfiguration(each) && this.copyOf(each)));
    if (!first.some((each) => this.copyOf(each))) return undefined;
    let reads: readonly Answered[] = [await this.readWithCopies(first)];
    for (;;) {
      const decision = tryDeciding(decide, reads);
      if (decision === undefined) return undefined;
      if (decision.kind === "commit") return decision.changes.length === 0 ? undefined : { ...decision, reads };
      reads = [...reads, await this.readWithCopies(decision.wanted)];
    }
  }

  private async readWithCopies(wanted: readonly Wanted[]): Promise<Answered> {
    const copies = wanted.map((each) => this.copyOf(each));
    const missing = wanted.filter((_, index) => copies[index] === undefined);
    const read = missing.length === 0 ? [] : [...(await this.store.read(missing)).answers];
    return { wanted, answers: copies.map((copy) => copy ?? read.shift() ?? []) };
  }

  private async areMetNow(expected: readonly Expectation[]): Promise<boolean> {
    if (expected.length === 0) return true;
    const wanted = expected.map(({ key }): Wanted => ({ kind: "key", key }));
    const { answers } = await this.store.read(wanted);
    return expected.every((each) => isMet(each, [{ wanted, answers }]));
  }

  private copyOf(wanted: Wanted): readonly Entry[] | undefined {
    if (wanted.kind === "key" && isBlock(wanted.key)) return this.blocks.find(wanted.key);
    const place = wanted.kind === "key" ? wanted.key : wanted.prefix;
    const watched = WATCHED.find((prefix) => place.startsWith(prefix));
    const isPage = wanted.kind === "prefix" && (wanted.limit !== undefined || wanted.after !== undefined);
    if (watched === undefined || isPage || this.replica?.status.state !== "in sync") return undefined;
    const snapshot = this.replica.snapshot?.[watched];
    if (snapshot === undefined || snapshot.unreadable.length > 0) return undefined;
    if (wanted.kind === "prefix") return Array.from(snapshot, ([, entry]) => entry).toSorted(byKey);
    const entry = snapshot.get(wanted.key);
    return entry ? [entry] : [];
  }

  private startCopying(): Replica<Record<string, Entry>> {
    const asItIs: KindSource<Entry>["decode"] = (entry) => entry;
    const kinds = Object.fromEntries(WATCHED.map((prefix) => [prefix, { prefix, decode: asItIs }]));
    return startReplica<Record<string, Entry>>(this.store, kinds, {
      signal: this.closing.signal,
      watches: "per kind",
      // It does not know the nodes, each of which has one; what is listed late is read by each call meanwhile.
      peers: () => ASSUMED_NODES,
      ...this.copying,
    });
  }
}

type Expectation = Extract<OrderedChange, { readonly kind: "expect" }>;

/** A commit that creates blocks expects the pools that they lie in. */
function poolsOfNewBlocks(changes: readonly OrderedChange[]): readonly Expectation[] {
  if (!changes.some(({ kind, key }) => kind === "create" && isBlock(key))) return [];
  return changes.filter((change) => change.kind === "expect").filter(({ key }) => key.startsWith(POOLS));
}

function isConfiguration(wanted: Wanted): boolean {
  return wanted.kind === "key" && wanted.key === IPAM_CONFIGURATION_KEY;
}

function isBlock(key: string): boolean {
  return BLOCKS.some((prefix) => key.startsWith(prefix));
}

interface DecidedCommit<Outcome> {
  readonly changes: readonly OrderedChange[];
  readonly outcome: Outcome;
  readonly reads: readonly Answered[];
}

/** What a decision throws counts only if it was made from what is read. */
function tryDeciding<Outcome>(decide: Decide<Outcome>, reads: readonly Answered[]): Decision<Outcome> | undefined {
  try {
    return decide(reads);
  } catch {
    return undefined;
  }
}

function byKey(left: Entry, right: Entry): number {
  return compareKeys(left.key, right.key);
}

/** The blocks as they were last seen; that one is absent is not remembered. */
class BlockMemory implements Observer {
  private readonly entries = new Map<string, Entry>();

  saw = (entry: Entry): void => {
    if (!isBlock(entry.key)) return;
    this.entries.delete(entry.key);
    this.entries.set(entry.key, entry);
    const [oldest] = this.entries.keys();
    if (this.entries.size > BLOCKS_REMEMBERED && oldest !== undefined) this.entries.delete(oldest);
  };

  missed = (key: string): void => void this.entries.delete(key);

  find(key: string): readonly Entry[] | undefined {
    const entry = this.entries.get(key);
    return entry && [entry];
  }
}
