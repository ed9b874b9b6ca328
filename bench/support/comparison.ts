/**
 * Compares candidates in one run.
 *
 * The speed of a host varies, so figures of different runs are not comparable.
 * In every round each candidate does its operation once, and each round starts
 * with another candidate: what slows the host down affects all of them, and the
 * ratio to the baseline stays meaningful.
 *
 *   round 1:  a b c      before(a) run(a) after(a)  before(b) run(b) after(b) …
 *   round 2:  b c a      only run() is timed
 *   round 3:  c a b
 */
import type { PeakMemory } from "./peak-memory.ts";
import { type Summary, summarize } from "./statistics.ts";

export interface Candidate {
  readonly name: string;
  /** Not timed; called before and after each turn. `after` also runs if the turn failed. */
  before?(turn: Turn): void | Promise<void>;
  after?(turn: Turn): void | Promise<void>;
  /** The timed operation; with a concurrency of n it is called n times concurrently. */
  run(turn: Turn, place: number): void | Cost | Promise<void> | Promise<Cost>;
  /** Measures what the operations of a turn cost in a daemon that serves them. */
  readonly meter?: Meter | undefined;
  /** Of one operation, measured separately so that it does not affect the timing. */
  peakMemory?(): Promise<PeakMemory | undefined>;
}

/** Called before the operations of a turn; the function it returns is called after them and returns their cost. Neither is timed. */
export type Meter = () => Promise<() => Promise<Cost>>;

/** The number of the turn; negative during warm-up. */
export interface Turn {
  readonly round: number;
}

/** The processor time of an operation, if it is known. */
export interface Cost {
  readonly cpuMilliseconds: number;
}

export interface Comparison {
  readonly title: string;
  readonly candidates: readonly Candidate[];
  /** The candidate that the others are compared with. */
  readonly baseline: string;
  readonly rounds: number;
  readonly warmUpRounds?: number;
  /** Warm-up turns of a candidate with a daemon before its first comparison. */
  readonly daemonTurns?: number;
  /** How many operations of a candidate run concurrently; the time is that of all of them together. */
  readonly concurrency?: number;
}

export interface CandidateResult {
  readonly name: string;
  readonly wall: Summary;
  readonly cpu: Summary | undefined;
  readonly peakMemory: PeakMemory | undefined;
  /** Median wall time divided by that of the baseline. */
  readonly ratio: number;
  /** Median wall time minus that of the baseline. */
  readonly difference: number;
  readonly wallMilliseconds: readonly number[];
}

export interface ComparisonResult {
  readonly title: string;
  readonly baseline: string;
  readonly rounds: number;
  readonly concurrency: number;
  readonly candidates: readonly CandidateResult[];
}

interface Measurement {
  readonly wallMilliseconds: number;
  readonly cpuMilliseconds: number | undefined;
}

/** A daemon runs for a long time, so it is measured after its first calls, when its code is compiled. */
const DAEMON_TURNS = 150;
const warmDaemons = new Set<string>();

/** A meter waits until its daemon is idle, and the kernel may finish work meanwhile: all candidates get the same pause. */
const PAUSE_MILLISECONDS = 25;

export async function runComparison(comparison: Comparison): Promise<ComparisonResult> {
  const { title, candidates, baseline, concurrency = 1 } = comparison;
  const rounds = Math.min(comparison.rounds, maximumRounds());
  const warmUpRounds = Math.min(comparison.warmUpRounds ?? 3, maximumRounds());
  if (!candidates.some((candidate) => candidate.name === baseline)) {
    throw new Error(`Cannot run "${title}": no candidate is named "${baseline}"`);
  }
  for (const candidate of candidates) {
    await warmUpDaemon(candidate, { turns: comparison.daemonTurns ?? DAEMON_TURNS, before: -warmUpRounds });
  }
  const pauseMilliseconds = candidates.some(({ meter }) => meter !== undefined) ? PAUSE_MILLISECONDS : 0;
  const measured = new Map<string, Measurement[]>(candidates.map(({ name }) => [name, []]));
  for (let round = -warmUpRounds; round < rounds; round++) {
    for (const candidate of rotated(candidates, round + warmUpRounds)) {
      const measurement = await takeTurn(candidate, { round }, { concurrency, pauseMilliseconds });
      if (round >= 0) measured.get(candidate.name)?.push(measurement);
    }
  }
  const baselineMedian = summarize(wallOf(measured.get(baseline) ?? [])).median;
  const results: CandidateResult[] = [];
  for (const candidate of candidates) {
    results.push(await resultOf(candidate, measured.get(candidate.name) ?? [], baselineMedian));
  }
  return { title, baseline, rounds, concurrency, candidates: results };
}

/** Once, before the candidate's first comparison. */
async function warmUpDaemon(
  { meter, ...candidate }: Candidate,
  { turns, before }: { readonly turns: number; readonly before: number },
): Promise<void> {
  if (meter === undefined || warmDaemons.has(candidate.name)) return;
  warmDaemons.add(candidate.name);
  const settings = { concurrency: 1, pauseMilliseconds: 0 };
  for (let turn = 1; turn <= Math.min(turns, maximumRounds()); turn++) {
    await takeTurn(candidate, { round: before - turn }, settings);
  }
}

/** BENCH_ROUNDS shortens a run that only has to show that the benchmark works. */
function maximumRounds(): number {
  return Number(process.env["BENCH_ROUNDS"] ?? Number.POSITIVE_INFINITY);
}

function rotated(candidates: readonly Candidate[], round: number): readonly Candidate[] {
  const first = round % candidates.length;
  return [...candidates.slice(first), ...candidates.slice(0, first)];
}

interface TurnSettings {
  readonly concurrency: number;
  readonly pauseMilliseconds: number;
}

async function takeTurn(candidate: Candidate, turn: Turn, settings: TurnSettings): Promise<Measurement> {
  const { concurrency, pauseMilliseconds } = settings;
  const places = Array.from({ length: concurrency }, (_, place) => place);
  try {
    await candidate.before?.(turn);
    const [readMeter] = await Promise.all([candidate.meter?.(), Bun.sleep(pauseMilliseconds)]);
    const started = performance.now();
    const costs = await Promise.all(places.map((place) => candidate.run(turn, place)));
    const wallMilliseconds = performance.now() - started;
    const daemonCost = await readMeter?.();
    const cpu = [...costs, daemonCost].flatMap((cost) => (cost === undefined ? [] : [cost.cpuMilliseconds]));
    const cpuMilliseconds = cpu.length === 0 ? undefined : cpu.reduce((sum, value) => sum + value, 0);
    return { wallMilliseconds, cpuMilliseconds };
  } finally {
    await candidate.after?.(turn);
  }
}

const wallOf = (measurements: readonly Measurement[]) => measurements.map((one) => one.wallMilliseconds);

async function resultOf(
  candidate: Candidate,
  measurements: readonly Measurement[],
  baselineMedian: number,
): Promise<CandidateResult> {
  const wall = summarize(wallOf(measurements));
  const cpu = measurements.flatMap((one) => one.cpuMilliseconds ?? []);
  return {
    name: candidate.name,
    wall,
    cpu: cpu.length === 0 ? undefined : summarize(cpu),
    peakMemory: await candidate.peakMemory?.(),
    ratio: wall.median / baselineMedian,
    difference: wall.median - baselineMedian,
    wallMilliseconds: wallOf(measurements),
  };
}
