/**
 * Keeps BIRD as the plan of BGP wants it: after a change of the plan, after an end of BIRD, and after a failure from time
 * to time. Many changes at once become one.
 */
import type { KnownRouting } from "../../model/routing-state.ts";
import type { BgpPlan } from "../../routing/bgp/plan.ts";
import { type BirdSettings, renderBird, renderEmptyBird } from "../../routing/bird/render.ts";
import { readSessions } from "../../routing/bird/sessions-status.ts";
import { type BirdState, writeBirdState } from "../../routing/bird/state.ts";
import { BirdDaemon, type DaemonMeans } from "./bird-daemon.ts";
import { SessionWatch } from "./session-watch.ts";

export interface KeeperMeans extends Omit<DaemonMeans, "report"> {
  readonly now: () => Date;
  readonly settings: BirdSettings;
  /** A message is reported once for as long as it is true. */
  readonly report: (message: string, level: "INFO" | "WARNING") => void;
}

/** A plan, or why there is none: "no BGP peer is configured". */
export type WantedBgp =
  | { readonly plan: BgpPlan }
  /** `problems`: what cannot be carried out of what the resources ask for. */
  | { readonly reason: string; readonly problems: readonly string[]; readonly routing?: "Disabled" };

/** Changes that arrive within this time after another are applied together. */
const PAUSE_MILLISECONDS = 50;
const RETRY_MILLISECONDS = 2_000;
const LONG = 2 ** 31 - 1;

export class BirdKeeper {
  readonly #means: KeeperMeans;
  readonly #daemon: BirdDaemon;
  #wanted: (() => WantedBgp) | undefined;
  #changed = Promise.withResolvers<void>();
  #written = "";
  #reported: readonly string[] = [];
  #plan: BgpPlan | undefined;
  #applied: { readonly state: BirdState; readonly plan: BgpPlan | undefined } | undefined;
  readonly #watch = new SessionWatch();

  constructor(means: KeeperMeans) {
    this.#means = means;
    this.#daemon = new BirdDaemon({ ...means, report: (message) => means.report(message, "INFO") });
  }

  /** What is wanted from now on; computed when it is applied, once for many changes. Returns at once. */
  update(wanted: () => WantedBgp): void {
    this.#wanted = wanted;
    this.#changed.resolve();
  }

  /** What has become of the plan that was applied last, for people. `undefined`: nothing was applied yet, or BIRD is busy. */
  async known(): Promise<KnownRouting | undefined> {
    const applied = this.#applied;
    if (applied === undefined) return undefined;
    const { state, plan } = applied;
    const failed = state.kind === "failed" ? [`BGP does not work: ${state.reason ?? "BIRD has failed"}`] : [];
    const reply = await this.#daemon.ask("show protocols");
    // It has changed meanwhile.
    if (this.#applied !== applied) return undefined;
    if (plan !== undefined && reply === undefined && failed.length === 0)
      failed.push("BGP does not work: BIRD has ended");
    const problems = [
      ...failed.map((message) => ({ state: "failed", message }) as const),
      ...state.problems.map((message) => ({ state: "warning", message: `BGP: ${message}` }) as const),
    ];
    if (plan === undefined) return { down: [], problems };
    const found = reply === undefined ? undefined : readSessions(reply.lines);
    return { ...this.#watch.look(plan.sessions, found, this.#means.now()), problems };
  }

  /** Until the signal is aborted. BIRD goes on. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#changed = Promise.withResolvers<void>();
      const state = this.#wanted === undefined ? undefined : await this.#apply(this.#wanted, signal);
      if (state !== undefined) this.#announce(state);
      this.#applied = state && { state, plan: this.#plan };
      await this.#means.wait(PAUSE_MILLISECONDS, signal);
      await this.#somethingToDo(state, signal);
    }
    this.#daemon.release();
  }

  async #apply(compute: () => WantedBgp, signal: AbortSignal): Promise<BirdState> {
    const { settings } = this.#means;
    let problems: readonly string[] = [];
    try {
      const wanted = compute();
      this.#plan = "plan" in wanted ? wanted.plan : undefined;
      if ("reason" in wanted) {
        problems = wanted.problems;
        await this.#daemon.bringDown(renderEmptyBird(settings), signal);
        const { reason, routing } = wanted;
        return { kind: "not needed", reason, ...(routing && { routing }), problems: [...problems] };
      }
      const { text, problems: unrendered } = renderBird(wanted.plan, settings);
      problems = [...wanted.plan.problems, ...unrendered];
      await this.#daemon.bringUp(text, signal);
      const families = [...new Set(wanted.plan.sessions.map(({ address }) => address.family))].sort();
      return { kind: "running", families, problems: [...problems] };
    } catch (failure) {
      const reason = failure instanceof Error ? failure.message : String(failure);
      return { kind: "failed", reason, problems: [...problems] };
    }
  }

  #announce(state: BirdState): void {
    const { report, program } = this.#means;
    const messages = [...(state.kind === "failed" ? [`BGP does not work: ${state.reason}`] : []), ...state.problems];
    for (const message of messages) if (!this.#reported.includes(message)) report(message, "WARNING");
    this.#reported = messages;
    const text = writeBirdState(state);
    if (text === this.#written) return;
    try {
      program.writeState(text);
      this.#written = text;
    } catch (failure) {
      report(`Cannot write the state of BIRD: ${failure}`, "WARNING");
    }
  }

  async #somethingToDo(state: BirdState | undefined, signal: AbortSignal): Promise<void> {
    const { ended } = this.#daemon;
    // BIRD has ended already.
    if (state?.kind === "running" && ended === undefined) return;
    const over = new AbortController();
    const pause = state?.kind === "failed" ? RETRY_MILLISECONDS : LONG;
    const waited = this.#means.wait(pause, AbortSignal.any([signal, over.signal]));
    await Promise.race([this.#changed.promise, waited, ...(ended === undefined ? [] : [ended])]);
    over.abort();
  }
}
