/** An administrator who upgrades a cluster, and starts the tool again whenever it has ended before its time. */
import { identity } from "../../../src/identity.ts";
import type { Ledger } from "../../../src/upgrade/engine/ledger.ts";
import type { SimulatedApi } from "../../datastore/simulated-api.ts";
import type { FaultyNetwork } from "../../faults/network.ts";
import { SimulatedProcess } from "../../schedule/process.ts";
import type { Random } from "../../schedule/random.ts";
import { runTool, type ToolEnd } from "./simulated-tool.ts";

const LEDGER = `/api/v1/namespaces/kube-system/configmaps/${identity.product}-upgrade`;
const LEASE = `/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/${identity.product}-upgrade`;
const LATEST_KILL = 400;
/** A lease expires after 15 seconds, so a run may go on elsewhere while this one is frozen. */
const LONGEST_FREEZE = 60_000;
const LONGEST_RUN = 30 * 60_000;

interface Attempt {
  readonly process: SimulatedProcess;
  readonly isUndisturbed: boolean;
  end: ToolEnd | undefined;
}

export class Administrator {
  /** Of all processes: each command with how it ended. */
  readonly history: string[] = [];
  private readonly files = new Map<string, string>();
  private readonly attempts: Attempt[] = [];
  private isCalm = false;

  constructor(
    private readonly site: { readonly api: SimulatedApi; readonly network: FaultyNetwork },
    private readonly random: Random,
  ) {}

  /** As the ledger in the cluster says. */
  get phase(): string {
    return this.ledger?.phase ?? "none";
  }

  /** Of a step; "none" if there is none. */
  stateOf(step: string): string {
    return this.ledger?.steps.find(({ name }) => name === step)?.state ?? "none";
  }

  private get ledger(): Ledger | undefined {
    const data = this.site.api.object(LEDGER)?.["data"] as Readonly<Record<string, string>> | undefined;
    return data === undefined ? undefined : (JSON.parse(data["ledger.json"] ?? "{}") as Ledger);
  }

  /** Whether a process of the tool runs to which nothing happens. One that waits for the Lease of a killed one writes nothing. */
  get isAtWork(): boolean {
    const spec = this.site.api.object(LEASE)?.["spec"] as { readonly holderIdentity?: string } | undefined;
    const holder = spec?.holderIdentity ?? "";
    return this.attempts.some(({ process, isUndisturbed, end }) => {
      return isUndisturbed && end === undefined && holder.startsWith(`${process.name}/`);
    });
  }

  /** Runs that ended because they could not renew their Lease: nothing keeps them from it for as long as they have to wait. */
  get givenUp(): readonly string[] {
    return this.history
      .filter((line) => line.includes("could not be renewed"))
      .map((line) => `a run has given up its Lease: ${line}`);
  }

  /** From now on nothing begins to happen to the tool; what has begun ends within a minute. */
  calm(): void {
    this.isCalm = true;
    this.site.network.disturbance = { delay: [0, 5], lostRequest: 0, lostAnswer: 0, lateRequest: 0 };
  }

  /** Until no process of the tool is left. */
  async untilIdle(): Promise<void> {
    await this.until(() => this.attempts.every(({ end }) => end !== undefined), LONGEST_RUN);
  }

  /** Without any fault, to its end. */
  async succeed(...args: readonly string[]): Promise<ToolEnd> {
    const attempt = this.start(args, { isUndisturbed: true });
    await this.until(() => attempt.end !== undefined, LONGEST_RUN);
    return attempt.end ?? { code: -1, stdout: "", stderr: "it does not end" };
  }

  /** Something happens to it on the way; it may still be there, frozen, when this returns. */
  async attempt(...args: readonly string[]): Promise<void> {
    const { network } = this.site;
    const attempt = this.start(args, { isUndisturbed: false });
    const { process } = attempt;
    const faults = [
      () => process.killAfter(this.random.below(LATEST_KILL)),
      () => process.killAfter(this.random.below(LATEST_KILL / 8)),
      () => this.later(() => process.freeze(this.random.below(LONGEST_FREEZE))),
      () => this.later(() => process.end()),
      () => this.later(() => this.cutForAWhile(process.name)),
      () => this.later(() => this.site.api.restart(this.random.below(30_000))),
      () => {
        network.disturbance = { delay: [0, 300], lostRequest: 0.02, lostAnswer: 0.05, lateRequest: 0.02 };
      },
      () => {
        network.disturbance = { delay: [0, 20], lostRequest: 0, lostAnswer: 0, lateRequest: 0 };
      },
    ];
    this.random.pick(faults)();
    await this.until(() => attempt.end !== undefined || process.isFrozen, LONGEST_RUN);
    // Another one begins before it wakes up, or after that.
    if (process.isFrozen && this.random.chance(0.5)) await this.until(() => attempt.end !== undefined, LONGEST_FREEZE);
    if (attempt.end === undefined && !process.isFrozen) process.kill();
  }

  /** Ends it after some time, wherever it is. */
  async killed(milliseconds: number, ...args: readonly string[]): Promise<void> {
    const attempt = this.start(args, { isUndisturbed: false });
    await this.until(() => attempt.end !== undefined, milliseconds);
    if (attempt.end === undefined) attempt.process.kill();
    await this.untilIdle();
  }

  private start(args: readonly string[], more: Pick<Attempt, "isUndisturbed">): Attempt {
    const { api, network } = this.site;
    const name = `admin-${this.attempts.length + 1}`;
    const process = new SimulatedProcess(name, network.scheduler, this.random.fork(name));
    const attempt: Attempt = { process, ...more, end: undefined };
    this.attempts.push(attempt);
    const line = (end: ToolEnd) =>
      `${network.scheduler.now} ${name} ${args.join(" ")}: ${end.code ?? "killed"} ${end.stderr}`;
    runTool(api, process, { args, files: this.files }).then(
      (end) => {
        attempt.end = end;
        this.history.push(line(end));
      },
      (failure: unknown) => {
        attempt.end = { code: -1, stdout: "", stderr: String(failure) };
        this.history.push(line(attempt.end));
      },
    );
    return attempt;
  }

  private later(fault: () => void): void {
    this.site.network.scheduler.after(this.random.below(90_000), () => this.isCalm || fault());
  }

  private cutForAWhile(place: string): void {
    const { network } = this.site;
    network.cut(place);
    network.scheduler.after(this.random.below(60_000), () => network.heal(place));
  }

  private async until(isOver: () => boolean, limit: number): Promise<void> {
    const { scheduler } = this.site.network;
    const end = scheduler.now + limit;
    while (!isOver() && scheduler.now < end) await scheduler.runUntil(Math.min(end, scheduler.now + 500));
  }
}
