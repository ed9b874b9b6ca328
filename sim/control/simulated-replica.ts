/** One replica of a program that elects its leader: a container that is started, killed, asked to end, and frozen. */
import type { Elector } from "../../src/kube/election/elector.ts";
import { SimulatedProcess } from "../schedule/process.ts";
import type { Random } from "../schedule/random.ts";
import type { Scheduler } from "../schedule/scheduler.ts";

export interface ReplicaMeans {
  /** Of the pod, and of its place in the network: `controllers-1`. */
  readonly name: string;
  readonly scheduler: Scheduler;
  readonly random: Random;
  /** Gets what its processes log. */
  readonly onLog?: (line: string) => void;
  /** A process ended that was not killed, and not asked to. */
  readonly onCrash?: (what: string) => void;
}

interface Program {
  readonly elector: Elector;
  run(): Promise<void>;
}

/** What a program needs to know of its process. */
export interface ProgramStart {
  readonly process: SimulatedProcess;
  /** Unique. */
  readonly identity: string;
  readonly log: (message: string) => void;
}

interface Running<Started> {
  readonly process: SimulatedProcess;
  readonly program: Started;
}

export class SimulatedReplica<Started extends Program> {
  /** What its processes logged, the latest last. */
  readonly logged: string[] = [];
  /** Why processes ended by themselves: an error ends a container. */
  readonly failures: unknown[] = [];
  private starts = 0;
  private running: Running<Started> | undefined;

  constructor(
    private readonly means: ReplicaMeans,
    private readonly open: (start: ProgramStart) => Started,
  ) {}

  get name(): string {
    return this.means.name;
  }

  /** `undefined` while none runs. */
  get process(): SimulatedProcess | undefined {
    return this.running?.process;
  }

  get program(): Started | undefined {
    return this.running?.program;
  }

  /** Whether it writes, or would if it were not frozen. */
  get isLeading(): boolean {
    return this.running?.program.elector.isLeading() === true;
  }

  /** As the orchestrator starts a container; nothing if it runs. */
  start(): void {
    if (this.running !== undefined) return;
    this.starts += 1;
    const { name, scheduler, random } = this.means;
    const process = new SimulatedProcess(name, scheduler, random.fork(`${name} ${this.starts}`));
    const log = (message: string) => {
      this.means.onLog?.(message);
      this.logged.push(`${process.now().toISOString()} ${message}`);
    };
    const running = { process, program: this.open({ process, identity: `${name}_${this.starts}`, log }) };
    this.running = running;
    process.onKill(() => this.forget(running));
    running.program.run().then(
      () => {
        if (process.isAlive && !process.signal.aborted) this.means.onCrash?.(`${name} has ended by itself`);
        this.forget(running);
      },
      (failure: unknown) => {
        if (process.isAlive) {
          this.failures.push(failure);
          this.means.onCrash?.(`${name} has ended: ${failure}`);
        }
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

  /** It does not die any more, or is started again. */
  heal(): void {
    this.running?.process.killAfter(Number.POSITIVE_INFINITY);
    this.start();
  }

  freeze(milliseconds: number): void {
    this.running?.process.freeze(milliseconds);
  }

  private forget(running: Running<Started>): void {
    if (this.running === running) this.running = undefined;
  }
}
