/** One replica of the controllers: the product's own process, on the clock and the connections of the simulation. */
import { ControllersProcess } from "../../src/bin/controllers-process.ts";
import type { Datastore } from "../../src/datastore/datastore.ts";
import type { KubeClient } from "../../src/kube/api.ts";
import { SimulatedProcess } from "../schedule/process.ts";
import type { Random } from "../schedule/random.ts";
import type { Scheduler } from "../schedule/scheduler.ts";

export interface SimulatedControllersMeans {
  /** Of the pod, and of its place in the network: `controllers-1`. */
  readonly name: string;
  readonly scheduler: Scheduler;
  readonly random: Random;
  /** New connections, for each process that starts. */
  readonly openStore: (process: SimulatedProcess) => Datastore;
  readonly openApi: (process: SimulatedProcess) => KubeClient;
  readonly isEtcd: boolean;
  readonly environment?: Readonly<Record<string, string>>;
}

interface Running {
  readonly process: SimulatedProcess;
  readonly controllers: ControllersProcess;
}

export class SimulatedControllers {
  /** What its processes logged, the latest last. */
  readonly logged: string[] = [];
  /** Processes that ended with an error, which ends a container. */
  readonly failures: unknown[] = [];
  private starts = 0;
  private running: Running | undefined;

  constructor(private readonly means: SimulatedControllersMeans) {}

  get name(): string {
    return this.means.name;
  }

  /** `undefined` while none runs. */
  get process(): SimulatedProcess | undefined {
    return this.running?.process;
  }

  get controllers(): ControllersProcess | undefined {
    return this.running?.controllers;
  }

  /** Whether it writes, or would if it were not frozen. */
  get isLeading(): boolean {
    return this.running?.controllers.elector.isLeading() === true;
  }

  /** As the orchestrator starts a container; nothing if it runs. */
  start(): void {
    if (this.running !== undefined) return;
    const { name, scheduler, openStore, openApi, isEtcd, environment = {} } = this.means;
    this.starts += 1;
    const random = this.means.random.fork(`${name} ${this.starts}`);
    const process = new SimulatedProcess(name, scheduler, random);
    const { now, elapsed, wait, signal } = process;
    const controllers = new ControllersProcess({
      client: openApi(process),
      store: openStore(process),
      isEtcd,
      environment,
      identity: `${name}_${this.starts}`,
      now,
      elapsed,
      wait,
      random: () => random.next(),
      signal,
      log: (message) => this.logged.push(`${now().toISOString()} ${message}`),
      started: () => {},
    });
    const running = { process, controllers };
    this.running = running;
    process.onKill(() => this.forget(running));
    controllers.run().then(
      () => this.forget(running),
      (failure: unknown) => {
        if (process.isAlive) this.failures.push(failure);
        this.forget(running);
      },
    );
  }

  kill(): void {
    this.running?.process.kill();
  }

  /** Asks it to end, as for a rollout: it gives the lease back. */
  end(): void {
    this.running?.process.end();
  }

  freeze(milliseconds: number): void {
    this.running?.process.freeze(milliseconds);
  }

  private forget(running: Running): void {
    if (this.running === running) this.running = undefined;
  }
}
