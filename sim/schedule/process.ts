/**
 * One process of a simulated cluster. Its clock, its randomness and all of its effects pass through here, so that it can be
 * killed between any two of them: from then on nothing it does has an effect, and nothing it waits for happens.
 */
import type { Random } from "./random.ts";
import type { Scheduler } from "./scheduler.ts";

/** Thrown by an effect of a process that is dead: its code may run on to its next `await`, but reaches nothing. */
export class ProcessKilled extends Error {}

export class SimulatedProcess {
  private isDead = false;
  private effects = 0;
  private killedAfter = Number.POSITIVE_INFINITY;
  private frozenUntil = Number.NEGATIVE_INFINITY;
  private readonly ending = new AbortController();
  private readonly whenKilled: (() => void)[] = [];

  constructor(
    readonly name: string,
    readonly scheduler: Scheduler,
    readonly random: Random,
    /** By how many milliseconds the clock of its machine is wrong. */
    private readonly clockError = 0,
  ) {}

  /** Which program it runs: the first word of its name. */
  get program(): string {
    return this.name.split(" ")[0] ?? "";
  }

  get isAlive(): boolean {
    return !this.isDead;
  }

  /** Aborted when the process is asked to end (SIGTERM). A killed process notices nothing. */
  get signal(): AbortSignal {
    return this.ending.signal;
  }

  readonly elapsed = (): number => this.scheduler.now;
  readonly now = (): Date => new Date(this.scheduler.date.getTime() + this.clockError);

  /** Never resolves if the process is killed meanwhile. */
  readonly wait = (milliseconds: number, signal?: AbortSignal): Promise<void> =>
    this.unlessKilled(this.scheduler.wait(milliseconds, signal));

  /** One synchronous effect, such as a message to the kernel or the writing of a file. */
  effect<Value>(work: () => Value): Value {
    this.refuseIfDead();
    if (this.effects >= this.killedAfter) {
      this.kill();
      this.refuseIfDead();
    }
    this.effects += 1;
    return work();
  }

  /** The answer to a request, or the silence that a dead process hears. */
  unlessKilled<Value>(answer: Promise<Value>): Promise<Value> {
    const { promise, resolve, reject } = Promise.withResolvers<Value>();
    answer.then(
      (value) => this.deliver(() => resolve(value)),
      (failure: unknown) => this.deliver(() => reject(failure)),
    );
    return promise;
  }

  /** Something reaches the process from outside: never if it is dead, and later if it is frozen. */
  deliver(arrival: () => void): void {
    if (!this.isAlive) return;
    const left = this.frozenUntil - this.scheduler.now;
    if (left > 0) this.scheduler.after(left, () => this.deliver(arrival));
    else this.arrive(arrival);
  }

  /** What arrives may be the cause of the effect at which the process dies: that ends nobody else. */
  private arrive(arrival: () => void): void {
    try {
      arrival();
    } catch (failure) {
      if (!this.isDead || !(failure instanceof ProcessKilled)) throw failure;
    }
  }

  /** It does not run for this long, and then goes on as if nothing had happened: a paused machine, or one that swaps. */
  freeze(milliseconds: number): void {
    this.frozenUntil = Math.max(this.frozenUntil, this.scheduler.now + milliseconds);
  }

  get isFrozen(): boolean {
    return this.frozenUntil > this.scheduler.now;
  }

  /** It dies instead of its next effect but this many. */
  killAfter(effects: number): void {
    this.killedAfter = this.effects + effects;
  }

  /** Called once, when the process dies: for what the kernel does then, such as closing its sockets. */
  onKill(work: () => void): void {
    this.whenKilled.push(work);
  }

  kill(): void {
    if (this.isDead) return;
    this.isDead = true;
    for (const work of this.whenKilled) work();
  }

  /** Asks it to end. */
  end(): void {
    this.deliver(() => this.ending.abort());
  }

  private refuseIfDead(): void {
    if (this.isDead) throw new ProcessKilled(`${this.name} is dead`);
  }
}
