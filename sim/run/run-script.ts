/**
 * Plays a script: assembles the cluster, lets everything happen that the script says, heals all faults, waits until
 * everything is at rest, and looks after every event whether what must hold does hold.
 */
import { allInvariants } from "../judge/all.ts";
import { type Invariant, KEEP_SECONDS, type Violation, violationsIn } from "../judge/invariant.ts";
import { boundOfLeaks } from "../judge/leaks.ts";
import { workBetween } from "../judge/work.ts";
import type { Operation, Script } from "../script/operation.ts";
import { Cluster } from "./cluster.ts";
import type { CoverageCounts } from "./coverage.ts";
import { catchExceptions, describeException } from "./exceptions.ts";
import { playOperation } from "./play-operation.ts";
import { CONTROLLER_SETTINGS } from "./settings.ts";
import { uncopied } from "./uncopied.ts";

export interface RunOptions {
  /** Gets a line for each thing that happens. */
  readonly trace?: (line: string) => void;
}

export interface RunOutcome {
  readonly violations: readonly Violation[];
  /** When the first violation was seen, in virtual milliseconds. */
  readonly violatedAt?: number;
  readonly steps: number;
  readonly virtualMilliseconds: number;
  readonly coverage: CoverageCounts;
  /** Whether its work at rest was judged: something was still to be done if it was not. */
  readonly isWorkJudged: boolean;
  /** The same for the same script: of all events and all records. */
  readonly traceHash: number;
}

/** Until the agents and controllers have begun. */
const WARM_UP = 30_000;
/** Longer than the product promises to need for anything. */
const UNTIL_REST = boundOfLeaks(CONTROLLER_SETTINGS) + 60_000;
/** What is kept waits before it is free, and the controllers look for it now and then. */
const UNTIL_NOTHING_WAITS = KEEP_SECONDS * 1_000 + 60_000;
/** Longer than a call takes that nothing disturbs. */
const CALLS = 30_000;
/** How long the cluster is watched at rest: longer than the five minutes between two rounds of upkeep. */
const REST = 6 * 60_000;

export async function runScript(script: Script, { trace }: RunOptions = {}): Promise<RunOutcome> {
  const cluster = new Cluster(script, (who, line) => log(who, line));
  const { scheduler } = cluster;
  const watch = new Watch(cluster);
  const log = (who: string, text: string) =>
    trace?.(`${(scheduler.now / 1_000).toFixed(3).padStart(9)} s  ${who.padEnd(13)}  ${text}`);
  const play = async () => {
    await cluster.start();
    await watch.runUntil(WARM_UP);
    const begin = scheduler.now;
    for (const operation of script.operations) {
      scheduler.after(operation.at, () => {
        log("script", describeOperation(operation));
        playOperation(cluster, operation).catch((failure: unknown) => watch.noteException(failure));
      });
    }
    await watch.runUntil(begin + Math.max(0, ...script.operations.map(endOf)));
    log("script", "all faults are healed");
    cluster.healAll();
    const keeps = script.operations.some((operation) => operation.kind === "create pod" && operation.keeps === true);
    await watch.runUntil(scheduler.now + UNTIL_REST + (keeps ? UNTIL_NOTHING_WAITS : 0));
    await watch.checkAtRest();
    await watch.checkCalls();
    await watch.checkWork();
  };
  await catchExceptions(play, (failure) => watch.noteException(failure));
  for (const { invariant, what } of watch.violations) log("VIOLATED", `${invariant}: ${what}`);
  return {
    violations: watch.violations,
    ...(watch.violatedAt === undefined ? {} : { violatedAt: watch.violatedAt }),
    steps: scheduler.steps,
    virtualMilliseconds: scheduler.now,
    coverage: cluster.coverage.counts,
    isWorkJudged: watch.isWorkJudged,
    traceHash: watch.hash,
  };
}

/** Looks at the cluster after each event, until something is violated. */
class Watch {
  violations: readonly Violation[] = [];
  violatedAt: number | undefined;
  isWorkJudged = false;
  hash = 0;
  /** What the cluster was when it was last judged. */
  private readonly seen: unknown[] = [];
  private readonly eachStep: readonly Invariant[];
  private readonly atRest: readonly Invariant[];

  constructor(private readonly cluster: Cluster) {
    const all = allInvariants();
    this.eachStep = all.filter(({ when }) => when === "after each step");
    this.atRest = all.filter(({ when }) => when === "at rest");
  }

  async runUntil(time: number): Promise<void> {
    if (this.violatedAt !== undefined) return;
    await this.cluster.scheduler.runUntil(time, () => {
      this.look();
      // What is wrong may go on for ever.
      return this.violatedAt === undefined ? undefined : "stop";
    });
  }

  async checkAtRest(): Promise<void> {
    if (this.violatedAt === undefined) this.judge(this.atRest);
    if (this.violatedAt === undefined)
      this.noteAll("what is asked for is copied", await uncopied(this.cluster.servers));
  }

  /** At rest every CHECK and every GC succeeds; the invariants of each step see whether they do harm. */
  async checkCalls(): Promise<void> {
    if (this.violatedAt !== undefined) return;
    const waiting = new Set([...this.cluster.machines.values()].filter(({ isOn }) => isOn));
    for (const machine of [...waiting]) void machine.tryCalls().then(() => waiting.delete(machine));
    await this.runUntil(this.cluster.now + CALLS);
    if (this.violatedAt !== undefined) return;
    this.noteAll(
      "CHECK and GC succeed",
      Array.from(waiting, ({ name }) => `${name}: they take longer than ${CALLS / 1_000} s`),
    );
  }

  /** At rest there is nothing to do; a pod that cannot get an address is tried again for ever. */
  async checkWork(): Promise<void> {
    if (this.violatedAt !== undefined || !this.cluster.isSettled) return;
    const before = this.cluster.work;
    await this.runUntil(this.cluster.now + REST);
    this.isWorkJudged = true;
    this.noteAll("no work at rest", workBetween(before, this.cluster.work, REST));
  }

  noteException(failure: unknown): void {
    if (this.violatedAt === undefined) this.noteAll("no exception", [describeException(failure)]);
  }

  private look(): void {
    const { now } = this.cluster;
    const isChanged = this.isChanged();
    this.hash = mix(this.hash, now);
    if (!isChanged) return;
    this.hash = Bun.hash.murmur32v3(this.seen.join(" "), this.hash);
    if (this.violatedAt === undefined) this.judge(this.eachStep);
  }

  /** Most events change nothing that an invariant could see; to find that out must cost next to nothing. */
  private isChanged(): boolean {
    const { seen } = this;
    let isChanged = false;
    let index = 0;
    this.cluster.forEachRevision((value) => {
      if (seen[index] !== value) {
        seen[index] = value;
        isChanged = true;
      }
      index += 1;
    });
    if (seen.length !== index) {
      seen.length = index;
      isChanged = true;
    }
    return isChanged;
  }

  private judge(invariants: readonly Invariant[]): void {
    this.note(violationsIn(this.cluster, invariants));
  }

  private noteAll(invariant: string, all: readonly string[]): void {
    this.note(all.map((what) => ({ invariant, what })));
  }

  private note(found: readonly Violation[]): void {
    if (found.length === 0) return;
    this.violations = found;
    this.violatedAt = this.cluster.now;
  }
}

const time = new Float64Array(1);
const words = new Uint32Array(time.buffer);

function mix(hash: number, milliseconds: number): number {
  time[0] = milliseconds;
  return Math.imul(Math.imul(hash ^ (words[0] ?? 0), 0x85ebca6b) ^ (words[1] ?? 0), 0xc2b2ae35) >>> 0;
}

/** Of a fault: servers and processes that do not answer do so again by themselves. */
function endOf(operation: Operation): number {
  if (operation.kind === "delete node") return operation.at + (operation.runsOn ?? 0);
  return operation.at + ("lasts" in operation ? operation.lasts : 0);
}

function describeOperation({ at: _at, kind, ...rest }: Operation): string {
  const details = Object.entries(rest).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return [kind, ...details].join(" ");
}
