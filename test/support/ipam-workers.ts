/**
 * Workers of a runtime that continue whatever happens to the datastore: a failed
 * call is recorded, and what could not be released is released later. The checks use
 * the results they got, not the datastore.
 */
import { type IpamSite, PLUGIN } from "./ipam-site.ts";
import type { Holding } from "./ipam-storm.ts";
import { runPlugin } from "./run-plugin.ts";

export interface CallFailure {
  readonly call: string;
  readonly code: number;
  readonly message: string;
  readonly details: string;
}

/** What happened in one interval of a trial. */
export interface Watch {
  readonly calls: number;
  readonly failures: readonly CallFailure[];
  /** Milliseconds of each call. */
  readonly durations: readonly number[];
}

export class IpamCrew {
  readonly holdings: Holding[] = [];
  private owed: { readonly container: string }[] = [];
  private carried: { readonly container: string; readonly address: string; readonly from: number }[] = [];
  private failures: CallFailure[] = [];
  private durations: number[] = [];
  private count = 0;

  constructor(
    private readonly site: IpamSite,
    private readonly workers: number,
  ) {}

  /** Every worker adds and deletes containers, one after another; it first deletes the one it kept, and keeps its last one. */
  async work(rounds: number): Promise<Watch> {
    const carried = this.carried.splice(0);
    const work = async (index: number) => {
      const mine = carried[index];
      if (mine) await this.remove(mine);
      for (let round = 0; round < rounds; round++) {
        const held = await this.add(`crew-${this.count++}`);
        if (held && round === rounds - 1) this.carried.push(held);
        else if (held) await this.remove(held);
      }
    };
    await Promise.all(Array.from({ length: this.workers }, (_, index) => work(index)));
    return this.report();
  }

  /** Releases everything that is left; a call that fails now fails the trial. */
  async finish(): Promise<Watch> {
    for (const each of this.carried.splice(0)) await this.remove(each);
    for (const { container } of this.owed.splice(0)) await this.call("DEL", container);
    return this.report();
  }

  /** The address, or `undefined` if the call failed. */
  async address(container: string): Promise<string | undefined> {
    return (await this.call("ADD", container))?.ips?.[0]?.address;
  }

  private async add(container: string) {
    const address = await this.address(container);
    // A runtime calls DEL after a failed ADD.
    if (address === undefined) this.owed.push({ container });
    return address === undefined ? undefined : { container, address, from: performance.now() };
  }

  private async remove(held: { readonly container: string; readonly address: string; readonly from: number }) {
    this.holdings.push({ ...held, until: performance.now() });
    if (!(await this.call("DEL", held.container))) this.owed.push(held);
  }

  private async call(command: "ADD" | "DEL", container: string): Promise<Answer | undefined> {
    const started = performance.now();
    const { exitCode, stdout } = await runPlugin(PLUGIN, {
      env: { ...this.site.environment, CNI_COMMAND: command, CNI_CONTAINERID: container, CNI_IFNAME: "eth0" },
      stdin: this.site.config,
    });
    this.durations.push(performance.now() - started);
    const answer = (stdout === "" ? {} : JSON.parse(stdout)) as Answer;
    if (exitCode === 0) return answer;
    const { code = 0, msg = "", details = "" } = answer;
    this.failures.push({ call: `${command} ${container}`, code, message: msg, details });
    return undefined;
  }

  private report(): Watch {
    const durations = this.durations.splice(0);
    return { calls: durations.length, failures: this.failures.splice(0), durations };
  }
}

interface Answer {
  readonly ips?: readonly { readonly address: string }[];
  readonly code?: number;
  readonly msg?: string;
  readonly details?: string;
}
