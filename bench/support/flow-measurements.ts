/** What flows cost a connection, and the collector beside a poll of the connection table. */
import { join } from "node:path";
import { connectMany, type Load, listenInServer } from "./flow-load.ts";
import type { FlowSite } from "./flow-site.ts";
import { processMemory } from "./process-memory.ts";
import { processorMilliseconds } from "./processor-clock.ts";
import { summarize } from "./statistics.ts";

export interface ConnectResult {
  readonly name: string;
  /** Medians of each round. */
  readonly connectMicroseconds: readonly number[];
  /** Processor time of the thread that connects and accepts, which is also that of the kernel's work for it. */
  readonly cpuMicroseconds: readonly number[];
  readonly perSecond: readonly number[];
}

export interface Sites {
  readonly without: FlowSite;
  readonly withFlows: FlowSite;
}

const CONNECTIONS = 2_000;
/** What observes the connections has time to finish before others are measured. */
const PAUSE_MILLISECONDS = 400;

export async function measureConnects(
  { without, withFlows }: Sites,
  rounds: number,
): Promise<readonly ConnectResult[]> {
  const sites = [
    { name: "without flows", site: without },
    { name: "with flows", site: withFlows },
  ];
  const results = sites.map(
    ({ name }) => ({ name, connectMicroseconds: [], cpuMicroseconds: [], perSecond: [] }) as Mutable,
  );
  for (let round = -3; round < rounds; round++) {
    for (const index of round % 2 === 0 ? [0, 1] : [1, 0]) {
      const [place, result] = [sites[index], results[index]];
      if (place === undefined || result === undefined) continue;
      using listener = listenInServer(place.site);
      const [cpu, started] = [processorMilliseconds(process.pid), performance.now()];
      const times = connectMany(place.site, listener, CONNECTIONS);
      const [wall, used] = [performance.now() - started, processorMilliseconds(process.pid) - cpu];
      await Bun.sleep(PAUSE_MILLISECONDS);
      if (round < 0) continue;
      result.connectMicroseconds.push(summarize(times).median);
      result.cpuMicroseconds.push((used * 1_000) / CONNECTIONS);
      result.perSecond.push((CONNECTIONS / wall) * 1_000);
    }
  }
  return results;
}

interface Mutable extends ConnectResult {
  readonly connectMicroseconds: number[];
  readonly cpuMicroseconds: number[];
  readonly perSecond: number[];
}

export interface ObserverResult {
  readonly observer: "collector" | "poll";
  readonly load: string;
  readonly wanted: number;
  readonly perSecond: number;
  /** Of one processor. */
  readonly share: number;
  /** The largest of the time. */
  readonly anonymousBytes: number;
  readonly residentBytes: number;
  readonly made: number;
  readonly seen: number;
  readonly losses: string;
}

const SAMPLE_MILLISECONDS = 200;
const LONGEST_DELAY_SECONDS = 6;

export async function measureCollector(site: FlowSite, load: Load, seconds: number): Promise<ObserverResult> {
  const since = Date.now();
  // Sums are of whole minutes, and losses of all loads.
  const before = await site.seenSince(since);
  const observed = await observe(site.collector(), load, { site, seconds });
  const after = await site.seenSince(since);
  const losses = Array.from(after.losses, ([name, value]) => [name, value - (before.losses.get(name) ?? 0)] as const)
    .filter(([, value]) => value > 0)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
  return { observer: "collector", ...observed, seen: after.count - before.count, losses };
}

export async function measurePoll(site: FlowSite, load: Load, seconds: number): Promise<ObserverResult> {
  const command = [process.execPath, join(import.meta.dir, "flow-poll.process.ts")];
  const poll = Bun.spawn(["nsenter", `--net=${site.host.netns}`, ...command], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const reader = poll.stdout.getReader();
  await reader.read();
  const observed = await observe(poll.pid, load, { site, seconds });
  poll.stdin.write("seen?\n");
  poll.stdin.flush();
  const seen = Number(new TextDecoder().decode((await reader.read()).value));
  poll.kill();
  await poll.exited;
  return { observer: "poll", ...observed, seen, losses: "" };
}

type Observed = Omit<ObserverResult, "observer" | "seen" | "losses">;

/** Until the observer has had time to see all of it; its processor time is divided by the seconds of the load. */
async function observe(
  pid: number,
  load: Load,
  { site, seconds }: { readonly site: FlowSite; readonly seconds: number },
): Promise<Observed> {
  let [anonymousBytes, residentBytes] = [0, 0];
  const sample = () => {
    const memory = processMemory(pid);
    anonymousBytes = Math.max(anonymousBytes, memory.anonymousBytes);
    residentBytes = Math.max(residentBytes, memory.residentBytes);
  };
  const sampling = setInterval(sample, SAMPLE_MILLISECONDS);
  const cpu = processorMilliseconds(pid);
  const made = await load.run(site, seconds);
  await Bun.sleep(LONGEST_DELAY_SECONDS * 1_000);
  const used = processorMilliseconds(pid) - cpu;
  clearInterval(sampling);
  sample();
  return {
    ...{ load: load.title, wanted: load.perSecond, perSecond: made / seconds },
    ...{ share: used / (seconds * 1_000), anonymousBytes, residentBytes, made },
  };
}
