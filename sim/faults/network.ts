/**
 * The network between the processes of a cluster and their servers. Every request takes its time, and may be lost on its
 * way, or be executed without the client ever hearing of it; a place can be cut off from everything.
 *
 *   sent ──delay──▶ arrives: executed ──delay──▶ answered
 *    │                 │                            │
 *    │                 ├ down: refused at once      └ down by then: the connection is reset
 *    │                 └ hangs: executed later, when the client may have given up
 *    └ lost, late, or its place is cut off: the client waits until its patience ends (so may it for an answer)
 *
 * What the client does about a failure is not decided here: see the connections in `sim/datastore`.
 */
import type { SimulatedProcess } from "../schedule/process.ts";
import type { Random } from "../schedule/random.ts";
import type { Scheduler } from "../schedule/scheduler.ts";

/** Probabilities are per request. */
export interface Disturbance {
  /** Milliseconds of each way. */
  readonly delay: readonly [least: number, most: number];
  readonly lostRequest: number;
  readonly lostAnswer: number;
  /** The request arrives after up to this many seconds, when its client may have given up. */
  readonly lateRequest: number;
  /** The same of the answer. */
  readonly lateAnswer?: number;
}

export const UNDISTURBED: Disturbance = { delay: [0, 1], lostRequest: 0, lostAnswer: 0, lateRequest: 0 };

const LATE_MILLISECONDS = 30_000;

/** Why there is no answer. `effect`: whether the server may have executed the request, or may still execute it. */
export class RequestFailed extends Error {
  constructor(
    readonly reason: "refused" | "reset" | "silence",
    readonly effect: "none" | "unknown",
  ) {
    super(`no answer: ${reason}`);
  }
}

export interface Server {
  isUp(): boolean;
  /** Until when it accepts requests without executing any. */
  hangsUntil?(): number;
}

export class FaultyNetwork {
  disturbance: Disturbance = UNDISTURBED;
  private readonly cutOff = new Set<string>();

  constructor(
    readonly scheduler: Scheduler,
    private readonly random: Random,
  ) {}

  cut(place: string): void {
    this.cutOff.add(place);
  }

  heal(place: string): void {
    this.cutOff.delete(place);
  }

  /** No place is cut off, and requests are not disturbed. */
  healAll(): void {
    this.disturbance = UNDISTURBED;
    this.cutOff.clear();
  }

  /** Some ways in which requests fail, or none. `mostFailing`: the share of them that each way concerns at most. */
  disturb(random: Random, mostFailing: number): void {
    const some = () => (random.chance(0.5) ? random.next() * mostFailing : 0);
    const delay = [0, random.chance(0.3) ? 2_000 : 50] as const;
    this.disturbance = { delay, lostRequest: some(), lostAnswer: some(), lateRequest: some() };
  }

  isCut(place: string): boolean {
    return this.cutOff.has(place);
  }

  /** How long something takes one way now. */
  delay(): number {
    const [least, most] = this.disturbance.delay;
    return least + this.random.next() * (most - least);
  }

  /**
   * One request, once. Fails with `RequestFailed`, without an answer after `patience` milliseconds, if any. A process that is dead, or dies meanwhile, never hears of it again; what it has sent is executed nevertheless.
   */
  request<Answer>(
    from: SimulatedProcess,
    place: string,
    server: Server,
    action: () => Answer,
    patience?: number,
  ): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const hear = (listen: () => void) =>
      from.deliver(() => {
        // It may die exactly between the effect of its request and the answer.
        if (hasEffect(from)) listen();
      });
    if (!from.isAlive || !hasEffect(from)) return promise;

    const { scheduler, random, disturbance } = this;
    const silence = () => hear(() => reject(new RequestFailed("silence", "unknown")));
    const giveUp = patience === undefined ? () => {} : scheduler.after(patience, silence);
    const fail = (failure: RequestFailed) => {
      giveUp();
      hear(() => reject(failure));
    };
    const isLost = random.chance(disturbance.lostRequest);
    const isLate = random.chance(disturbance.lateRequest);
    const isAnswerLost = random.chance(disturbance.lostAnswer);
    const isAnswerLate = disturbance.lateAnswer !== undefined && random.chance(disturbance.lateAnswer);
    if (isLost || this.isCut(place)) return promise;

    const arrive = () => {
      if (this.isCut(place)) return;
      const hangs = (server.hangsUntil?.() ?? 0) - scheduler.now;
      if (server.isUp() && hangs > 0) {
        scheduler.after(hangs + this.delay(), arrive);
        return;
      }
      if (!server.isUp()) return this.afterDelay(() => fail(new RequestFailed("refused", "none")));
      const outcome = settled(action);
      if (isAnswerLost) return;
      const answer = () => {
        if (this.isCut(place)) return;
        if (!server.isUp()) return fail(new RequestFailed("reset", "unknown"));
        giveUp();
        hear(() => (outcome.ok ? resolve(outcome.value) : reject(outcome.failure)));
      };
      scheduler.after(this.delay() + this.lateness(isAnswerLate), answer);
    };
    scheduler.after(this.delay() + this.lateness(isLate), arrive);
    return promise;
  }

  private lateness(isLate: boolean): number {
    return isLate ? this.random.next() * LATE_MILLISECONDS : 0;
  }

  private afterDelay(action: () => void): void {
    this.scheduler.after(this.delay(), action);
  }
}

/** `false` if the process dies at this point. */
function hasEffect(process: SimulatedProcess): boolean {
  try {
    process.effect(() => {});
    return true;
  } catch {
    return false;
  }
}

type Settled<Answer> =
  | { readonly ok: true; readonly value: Answer }
  | { readonly ok: false; readonly failure: unknown };

function settled<Answer>(action: () => Answer): Settled<Answer> {
  try {
    return { ok: true, value: action() };
  } catch (failure) {
    return { ok: false, failure };
  }
}
