/**
 * Brings BIRD to a configuration, or to its end.
 *
 *   configuration ─▶ checked by `bird -p` ─▶ in place ─▶ running? ── yes ─▶ `configure`
 *                       │ refused: the one in place             └── no ──▶ started
 *                       ▼ stays in use
 *
 * BIRD is a daemon that outlives the agent: a running one is adopted by its control socket. One that has died is started
 * to recover: the kernel and its peers have kept its routes.
 */
import type { BirdReply } from "../../routing/bird/replies.ts";
import type { BirdProgram } from "./bird-program.ts";
import type { BirdControl } from "./control.ts";

export interface DaemonMeans {
  readonly program: BirdProgram;
  readonly report: (message: string) => void;
  readonly elapsed: () => number;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 2_000;
/** A BIRD that has run for this long is started again without a pause. */
const STEADY = 10_000;
const CLOSE_MILLISECONDS = 5_000;
const POLL_MILLISECONDS = 20;
const SCAN_MILLISECONDS = 500;
export const NO_PROGRAM =
  'no program "bird" is installed: install the package "bird2", or set "bgp: Disabled" in the NodeAgentConfiguration';

export class BirdDaemon {
  readonly #means: DaemonMeans;
  #control: BirdControl | undefined;
  /** The configuration that the running BIRD uses; `undefined` if that is not known. */
  #applied: string | undefined;
  /** Not tried again: it would be refused again. */
  #refused: { readonly text: string; readonly reason: string } | undefined;
  #startedAt = Number.NEGATIVE_INFINITY;
  #pause = 0;

  constructor(means: DaemonMeans) {
    this.#means = means;
  }

  /** Resolves when BIRD has ended; `undefined` if it does not run. */
  get ended(): Promise<void> | undefined {
    return this.#control?.closed;
  }

  /** `undefined` if BIRD does not run. By a connection of its own: a reply that is late must not cost that of the configuration. */
  async ask(command: string): Promise<BirdReply | undefined> {
    const control = await this.#means.program.connect().catch(() => undefined);
    return control?.ask(command).finally(() => control.close());
  }

  /** Rejects with the reason if BIRD does not run with this configuration then. */
  async bringUp(text: string, signal: AbortSignal): Promise<void> {
    const { program } = this.#means;
    if (!program.isInstalled()) throw new Error(NO_PROGRAM);
    const control = await this.#connect();
    if (control !== undefined && this.#applied === text) return;
    const refusal = await this.#install(text);
    if (control === undefined && program.configuration() !== undefined) await this.#start(signal);
    else if (refusal === undefined) {
      await control?.ask("configure");
      this.#applied = text;
    }
    if (refusal !== undefined) throw new Error(`BIRD refuses its configuration and keeps the old one: ${refusal}`);
  }

  /** `text`: a configuration without sessions. Peers drop the routes of this node at once, and the kernel those of peers. */
  async bringDown(text: string, signal: AbortSignal): Promise<void> {
    const { program, wait } = this.#means;
    const running = await this.#connect();
    const isLeftover = running === undefined && program.wasKilled() && program.isInstalled();
    if (running === undefined && !isLeftover) return;
    const refusal = await this.#install(text);
    if (refusal !== undefined) throw new Error(refusal);
    if (isLeftover) {
      // It was killed, and the kernel has its routes: a new one removes them when it has looked at the kernel.
      await program.start("fresh");
      await wait(SCAN_MILLISECONDS, signal);
    }
    const control = await this.#connect();
    if (control === undefined) return;
    await control.ask("configure");
    await this.#sessionsClosed(control, signal);
    await control.ask("down").catch(() => {});
    await Promise.race([control.closed, wait(CLOSE_MILLISECONDS, signal)]);
    this.#applied = undefined;
  }

  /** BIRD goes on. */
  release(): void {
    this.#control?.close();
  }

  async #connect(): Promise<BirdControl | undefined> {
    if (this.#control !== undefined) return this.#control;
    const control = await this.#means.program.connect().catch(() => undefined);
    if (control === undefined) return undefined;
    this.#control = control;
    this.#applied = undefined;
    void control.closed.then(() => {
      this.#control = undefined;
    });
    return control;
  }

  async #install(text: string): Promise<string | undefined> {
    if (this.#refused?.text === text) return this.#refused.reason;
    const reason = await this.#means.program.install(text);
    this.#refused = reason === undefined ? undefined : { text, reason };
    return reason;
  }

  async #start(signal: AbortSignal): Promise<void> {
    const { program, elapsed, wait, report } = this.#means;
    const isSteady = elapsed() - this.#startedAt >= STEADY;
    this.#pause = isSteady ? 0 : Math.min(Math.max(this.#pause * 2, FIRST_PAUSE), LONGEST_PAUSE);
    if (this.#pause > 0) await wait(this.#pause, signal);
    if (signal.aborted) return;
    this.#startedAt = elapsed();
    const isRecovering = program.wasKilled();
    await program.start(isRecovering ? "recovering" : "fresh");
    report(isRecovering ? "BIRD had ended: started again, its routes are kept" : "BIRD has been started");
    if ((await this.#connect()) === undefined) throw new Error("BIRD has been started, but has ended at once");
    this.#applied = program.configuration();
  }

  async #sessionsClosed(control: BirdControl, signal: AbortSignal): Promise<void> {
    const { elapsed, wait } = this.#means;
    const end = elapsed() + CLOSE_MILLISECONDS;
    while (!signal.aborted && elapsed() < end) {
      const { lines } = await control.ask("show protocols");
      if (!lines.some((line) => /^\S+\s+BGP\s/.test(line))) return;
      await wait(POLL_MILLISECONDS, signal);
    }
  }
}
