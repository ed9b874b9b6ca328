/**
 * Many processes at once that assign and release addresses, and checks that only use
 * their results.
 *
 * A container has an address from the end of its ADD until its DEL begins; two
 * containers with one address at the same time are a double allocation, whatever
 * the datastore contains.
 */
import { type IpamSite, PLUGIN } from "./ipam-site.ts";

export interface StormSize {
  readonly processes: number;
  readonly rounds: number;
  /** The share of processes that are killed, from 0 to 1. */
  readonly killed?: number;
}

export interface Holding {
  readonly address: string;
  readonly container: string;
  readonly from: number;
  readonly until: number;
}

export interface StormReport {
  readonly holdings: readonly Holding[];
  /** Milliseconds of ADDs and DELs that were not killed. */
  readonly durations: readonly number[];
  readonly failures: readonly string[];
  readonly killed: number;
  readonly seconds: number;
}

export async function runStorm(site: IpamSite, size: StormSize): Promise<StormReport> {
  const lanes = Array.from({ length: size.processes }, (_, index) => new Lane(site, size.killed ?? 0, `lane${index}`));
  const started = performance.now();
  await Promise.all(lanes.map((lane) => lane.run(size.rounds)));
  return {
    holdings: lanes.flatMap((lane) => lane.holdings),
    durations: lanes.flatMap((lane) => lane.durations),
    failures: lanes.flatMap((lane) => lane.failures),
    killed: lanes.reduce((total, lane) => total + lane.killed, 0),
    seconds: (performance.now() - started) / 1000,
  };
}

/** Pairs of containers that had the same address at the same time. */
export function findDoubles(holdings: readonly Holding[]): readonly string[] {
  const sorted = [...holdings].sort((left, right) => left.from - right.from);
  const last = new Map<string, Holding>();
  return sorted.flatMap((holding) => {
    const before = last.get(holding.address);
    if (!before || before.until < holding.until) last.set(holding.address, holding);
    return before && before.until > holding.from
      ? [`${holding.address}: ${before.container} and ${holding.container}`]
      : [];
  });
}

/** One container after another, as one worker of a runtime would do it. */
class Lane {
  readonly holdings: Holding[] = [];
  readonly durations: number[] = [];
  readonly failures: string[] = [];
  killed = 0;

  constructor(
    private readonly site: IpamSite,
    private readonly killChance: number,
    private readonly name: string,
  ) {}

  async run(rounds: number): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      const container = `${this.name}-${round}`;
      const answer = await this.call("ADD", container);
      const from = performance.now();
      await Bun.sleep(Math.random() * 20);
      const until = performance.now();
      for (const address of answer.addresses) this.holdings.push({ address, container, from, until });
      // A runtime repeats a DEL until it succeeds.
      for (let attempt = 0; (await this.call("DEL", container)).killed && attempt < 50; attempt++);
    }
  }

  private async call(command: "ADD" | "DEL", container: string) {
    const started = performance.now();
    const child = Bun.spawn([PLUGIN], {
      env: { ...this.site.environment, CNI_COMMAND: command, CNI_CONTAINERID: container, CNI_IFNAME: "eth0" },
      stdin: Buffer.from(JSON.stringify(this.site.config)),
      stdout: "pipe",
      stderr: "ignore",
    });
    const timer =
      Math.random() < this.killChance ? setTimeout(() => child.kill("SIGKILL"), Math.random() * 150) : undefined;
    const [text] = await Promise.all([new Response(child.stdout).text(), child.exited]);
    clearTimeout(timer);
    if (child.signalCode !== null) {
      this.killed += 1;
      return { killed: true, addresses: [] };
    }
    this.durations.push(performance.now() - started);
    if (child.exitCode !== 0) this.failures.push(`${command} ${container}: ${text}`);
    return { killed: false, addresses: child.exitCode === 0 ? addressesOf(text) : [] };
  }
}

function addressesOf(text: string): readonly string[] {
  if (text === "") return [];
  const result = JSON.parse(text) as { readonly ips?: readonly { readonly address: string }[] };
  return (result.ips ?? []).map(({ address }) => address);
}
