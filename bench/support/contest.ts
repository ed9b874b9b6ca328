/**
 * Contenders measured side by side in one run.
 *
 * A host is never equally quick for long, so figures of different runs do not
 * compare. Here every round lets each contender do its operation once, and each
 * round begins with another contender: what slows the host slows them all, and
 * the ratio to the baseline stays true.
 *
 *   round 1:  a b c      before(a) run(a) after(a)  before(b) run(b) after(b) …
 *   round 2:  b c a      only run() is timed
 *   round 3:  c a b
 */
import type { PeakMemory } from "./peak-memory.ts";
import { type Summary, summarize } from "./statistics.ts";

export interface Contender {
  readonly name: string;
  /** Untimed, before and after each turn. `after` runs also when the turn failed. */
  before?(turn: Turn): void | Promise<void>;
  after?(turn: Turn): void | Promise<void>;
  /** The timed operation; with a concurrency of n it is called n times at once. */
  run(turn: Turn, place: number): void | Cost | Promise<void> | Promise<Cost>;
  /** Where the operations of a turn have a cost outside of them, in a daemon that serves them. */
  readonly meter?: Meter | undefined;
  /** Of one operation, measured apart so that it disturbs no timing. */
  peakMemory?(): Promise<PeakMemory | undefined>;
}

/** Called untimed before the operations of a turn; what it answers is called untimed after them, and tells their cost. */
export type Meter = () => Promise<() => Promise<Cost>>;

/** Which turn it is; negative numbers are the warm-up. */
export interface Turn {
  readonly round: number;
}

/** What an operation used, where it can tell. */
export interface Cost {
  readonly cpuMilliseconds: number;
}

export interface Contest {
  readonly title: string;
  readonly contenders: readonly Contender[];
  /** The contender that the ratios are told against. */
  readonly baseline: string;
  readonly rounds: number;
  readonly warmUpRounds?: number;
  /** Turns of a contender with a daemon before its first contest. */
  readonly daemonTurns?: number;
  /** How many operations of a contender run at once; the time is that of all of them. */
  readonly concurrency?: number;
}

export interface Standing {
  readonly name: string;
  readonly wall: Summary;
  readonly cpu: Summary | undefined;
  readonly peakMemory: PeakMemory | undefined;
  /** Median of the wall time over that of the baseline. */
  readonly ratio: number;
  /** Median of the wall time less that of the baseline. */
  readonly difference: number;
  readonly wallMilliseconds: readonly number[];
}

export interface ContestResult {
  readonly title: string;
  readonly baseline: string;
  readonly rounds: number;
  readonly concurrency: number;
  readonly standings: readonly Standing[];
}

interface Measurement {
  readonly wallMilliseconds: number;
  readonly cpuMilliseconds: number | undefined;
}

/** A daemon stays, so it is measured as it is after its first calls, when its code is compiled. */
const DAEMON_TURNS = 150;
const warmDaemons = new Set<string>();

/** A meter waits for its daemon to rest, and the kernel may tidy up meanwhile: then all contenders get that pause. */
const PAUSE_MILLISECONDS = 25;

export async function runContest(contest: Contest): Promise<ContestResult> {
  const { title, contenders, baseline, concurrency = 1 } = contest;
  const rounds = Math.min(contest.rounds, mostRounds());
  const warmUpRounds = Math.min(contest.warmUpRounds ?? 3, mostRounds());
  if (!contenders.some((contender) => contender.name === baseline)) {
    throw new Error(`Cannot run "${title}": no contender is called "${baseline}"`);
  }
  for (const contender of contenders) {
    await warmUpDaemon(contender, { turns: contest.daemonTurns ?? DAEMON_TURNS, before: -warmUpRounds });
  }
  const pauseMilliseconds = contenders.some(({ meter }) => meter !== undefined) ? PAUSE_MILLISECONDS : 0;
  const measured = new Map<string, Measurement[]>(contenders.map(({ name }) => [name, []]));
  for (let round = -warmUpRounds; round < rounds; round++) {
    for (const contender of inTurn(contenders, round + warmUpRounds)) {
      const measurement = await takeTurn(contender, { round }, { concurrency, pauseMilliseconds });
      if (round >= 0) measured.get(contender.name)?.push(measurement);
    }
  }
  const baselineMedian = summarize(wallOf(measured.get(baseline) ?? [])).median;
  const standings: Standing[] = [];
  for (const contender of contenders) {
    standings.push(await standingOf(contender, measured.get(contender.name) ?? [], baselineMedian));
  }
  return { title, baseline, rounds, concurrency, standings };
}

/** Once, before the first contest it takes part in. */
async function warmUpDaemon(
  { meter, ...contender }: Contender,
  { turns, before }: { readonly turns: number; readonly before: number },
): Promise<void> {
  if (meter === undefined || warmDaemons.has(contender.name)) return;
  warmDaemons.add(contender.name);
  const settings = { concurrency: 1, pauseMilliseconds: 0 };
  for (let turn = 1; turn <= Math.min(turns, mostRounds()); turn++) {
    await takeTurn(contender, { round: before - turn }, settings);
  }
}

/** BENCH_ROUNDS shortens a run that shall only show that the benchmark works. */
function mostRounds(): number {
  return Number(process.env["BENCH_ROUNDS"] ?? Number.POSITIVE_INFINITY);
}

function inTurn(contenders: readonly Contender[], round: number): readonly Contender[] {
  const first = round % contenders.length;
  return [...contenders.slice(first), ...contenders.slice(0, first)];
}

interface TurnSettings {
  readonly concurrency: number;
  readonly pauseMilliseconds: number;
}

async function takeTurn(contender: Contender, turn: Turn, settings: TurnSettings): Promise<Measurement> {
  const { concurrency, pauseMilliseconds } = settings;
  const places = Array.from({ length: concurrency }, (_, place) => place);
  try {
    await contender.before?.(turn);
    const [readMeter] = await Promise.all([contender.meter?.(), Bun.sleep(pauseMilliseconds)]);
    const started = performance.now();
    const costs = await Promise.all(places.map((place) => contender.run(turn, place)));
    const wallMilliseconds = performance.now() - started;
    const elsewhere = await readMeter?.();
    const cpu = [...costs, elsewhere].flatMap((cost) => (cost === undefined ? [] : [cost.cpuMilliseconds]));
    const cpuMilliseconds = cpu.length === 0 ? undefined : cpu.reduce((sum, value) => sum + value, 0);
    return { wallMilliseconds, cpuMilliseconds };
  } finally {
    await contender.after?.(turn);
  }
}

const wallOf = (measurements: readonly Measurement[]) => measurements.map((one) => one.wallMilliseconds);

async function standingOf(
  contender: Contender,
  measurements: readonly Measurement[],
  baselineMedian: number,
): Promise<Standing> {
  const wall = summarize(wallOf(measurements));
  const cpu = measurements.flatMap((one) => one.cpuMilliseconds ?? []);
  return {
    name: contender.name,
    wall,
    cpu: cpu.length === 0 ? undefined : summarize(cpu),
    peakMemory: await contender.peakMemory?.(),
    ratio: wall.median / baselineMedian,
    difference: wall.median - baselineMedian,
    wallMilliseconds: wallOf(measurements),
  };
}
