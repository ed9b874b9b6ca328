/**
 * What the part of the agent that observes flows must know of the policy table: which number in the label of a connection
 * stands for which rule, and how many packets the rules have dropped.
 *
 *   rule of the table with a new comment ──▶ number, in the file ──▶ `added` ──▶ kernel
 *   whole look at the connection table ──▶ `noteUse` ──▶ numbers of rules that are gone ──▶ `removed`
 *
 * Policy never waits for numbers, and does not fail without them: a rule that cannot have one now writes no label, until
 * `labelMore`.
 */
import { existsSync } from "node:fs";
import { describeFailure } from "../../errors.ts";
import { labelOf } from "../../flows/rule-label.ts";
import type { NumberedRule } from "../../flows/rule-numbers.ts";
import type { RuleCount } from "../../linux/nftables/rule-counts.ts";
import type { NodeAgentSettings } from "../../model/node-agent-configuration.ts";
import type { Point } from "../../policy/point.ts";
import type { LabelledComments } from "../../policy/render/flow-marks.ts";
import { INVALID_STATE } from "../../policy/table/rule-comment.ts";
import { quoted } from "../../quote.ts";
import { nextTurn } from "../../timers.ts";
import { openRuleNumbers, type RuleNumberFile, type RuleNumberFileOptions } from "../flows/rule-number-file.ts";
import type { AgentClock } from "../means.ts";
import type { KernelTable } from "./kernel-table.ts";

export type { NumberedRule };

export interface FlowRules {
  /** Of this node, as of the last change of the configuration. */
  readonly settings: NodeAgentSettings;
  /**
   * Since when every rule of the kernel that accepts connections writes labels, in milliseconds since 1970, also over a restart
   * of the agent. `undefined` while flows are switched off, or if the kernel has no labels.
   */
  readonly labelsSince: number | undefined;
  /** Every number that a connection may have in its label, also of rules that are gone. */
  rules(): readonly NumberedRule[];
  /** Those of rules that accept for the sidecar of the destination, which decides about each request. */
  rulesWithRequests(): readonly number[];
  /** Until the function that is returned is called. */
  follow(listener: FlowRuleListener): () => void;
  /** A whole look at the connection table that began then, in milliseconds since 1970, found these numbers. */
  noteUse(since: number, numbers: readonly number[]): void;
  /**
   * How many packets the rules of each comment have dropped since the agent began, or before it. Read again only as often as
   * that takes a small share of the time.
   */
  denied(): readonly (readonly [comment: string, packets: number])[];
}

export interface FlowRuleListener {
  /** Before a rule with the number is in the kernel. */
  added(rules: readonly NumberedRule[]): void;
  /** They stand for nothing any more, until they are added again. */
  removed(numbers: readonly number[]): void;
  /** The kernel has the rules for other settings now: flows may be switched on or off. */
  settingsChanged(): void;
}

export interface FlowRuleOptions extends Omit<RuleNumberFileOptions, "elapsed"> {
  /** The highest number in a label or rule of the kernel, 0 if there is none: asked for if the file does not say it. */
  readonly highestInKernel: () => Iterator<undefined, number>;
  /** All rules of the table get their labels again, and the kernel has them. */
  readonly renewLabels: () => void;
  readonly settings: () => NodeAgentSettings;
  readonly labelled: () => LabelledComments;
  /** What the rules of the kernel have counted. Reads all of them. */
  readonly counts: () => readonly RuleCount[];
  /** Whether the kernel has the rules that the settings and policies say. */
  readonly isSettled: () => boolean;
  /** Why rules cannot write labels. */
  readonly labelProblem: string | undefined;
  readonly clock: Pick<AgentClock, "elapsed" | "now">;
}

/** Counters are read at most so often, and in at most this share of the time. */
const COUNTS_MILLISECONDS = 1_000;
const COUNTS_SHARE = 0.02;
/** A short look at the kernel's numbers is waited for; a longer one goes on between other work. */
const LOOK_MILLISECONDS = 20;
/** After numbers could not be read. */
const PAUSE_MILLISECONDS = 30_000;

export class TableFlowRules implements FlowRules {
  private readonly listeners = new Set<FlowRuleListener>();
  /** Opened when flows are switched on for the first time. */
  private file: RuleNumberFile | undefined;
  private isLooking = false;
  private isClosed = false;
  private failedAt: number | undefined;
  /** A rule of the table has no label although it should. */
  private isLabelMissing = false;
  private unannounced: NumberedRule[] = [];
  private announcedSettings: NodeAgentSettings | undefined;
  private counted: { readonly until: number; readonly denied: ReturnType<FlowRules["denied"]> } | undefined;

  constructor(private readonly options: FlowRuleOptions) {}

  get settings(): NodeAgentSettings {
    return this.options.settings();
  }

  get labelsSince(): number | undefined {
    return this.isOn && !this.isLabelMissing ? this.file?.since : undefined;
  }

  /** For the compiler: what a rule with this comment writes, while flows are switched on. Never throws. */
  readonly labelOf = (point: Point, comment: string): Uint8Array | undefined => {
    const found = this.numberOf(comment);
    if (found === "all in use") return undefined;
    if (found === undefined) {
      this.isLabelMissing = true;
      return undefined;
    }
    if (found.isNew) this.unannounced.push([found.number, comment]);
    return labelOf(point, found.number);
  };

  rules(): readonly NumberedRule[] {
    return this.file?.all ?? [];
  }

  rulesWithRequests(): readonly number[] {
    const { forSidecars } = this.options.labelled();
    return this.rules().flatMap(([number, comment]) => (forSidecars.has(comment) ? [number] : []));
  }

  follow(listener: FlowRuleListener): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  noteUse(since: number, numbers: readonly number[]): void {
    // Rules of a former table may still be in the kernel, and write numbers that this one does not have.
    if (this.file === undefined || !this.options.isSettled()) return;
    const now = this.options.clock.now().getTime();
    const released = this.file.releaseUnused(this.options.labelled().all, { since, numbers }, now);
    if (released.length > 0) for (const listener of this.listeners) listener.removed(released);
  }

  denied(): ReturnType<FlowRules["denied"]> {
    const { elapsed } = this.options.clock;
    const begun = elapsed();
    if (this.counted !== undefined && begun < this.counted.until) return this.counted.denied;
    const denied = sumDenied(this.options.counts());
    const taken = elapsed() - begun;
    this.counted = { until: begun + Math.max(COUNTS_MILLISECONDS, taken / COUNTS_SHARE), denied };
    return denied;
  }

  /** The kernel, to which rules with new numbers go only after the listeners know these. */
  announcing(kernel: KernelTable): KernelTable {
    const after = <Result>(work: () => Result): Result => {
      this.announce();
      return work();
    };
    return {
      adopt: (table) => after(() => kernel.adopt(table)),
      replace: (table) => after(() => kernel.replace(table)),
      change: (table, delta) => after(() => kernel.change(table, delta)),
      remove: () => kernel.remove(),
      notice: () => kernel.notice(),
      counts: () => kernel.counts(),
      difference: (table, sets) => kernel.difference(table, sets),
      elementDifference: (table, sets) => kernel.elementDifference(table, sets),
      close: () => kernel.close(),
    };
  }

  /** The kernel has acknowledged what the settings say. */
  applied(): void {
    if (!this.options.isSettled()) return;
    const { settings } = this;
    if (Bun.deepEquals(settings, this.announcedSettings)) return;
    this.announcedSettings = settings;
    this.noteSwitch();
    for (const listener of this.listeners) listener.settingsChanged();
  }

  /** Rules that could not have a label get it now, if they can. Cheap if there are none. */
  labelMore(): void {
    if (!this.isLabelMissing || !this.isOn || this.options.labelProblem !== undefined || !this.options.isSettled())
      return;
    if (this.openFile()?.canWriteAgain() !== true) return;
    this.isLabelMissing = false;
    this.options.renewLabels();
    // Until now not every rule had one.
    if (!this.isLabelMissing) this.file?.setSince(this.options.clock.now().getTime());
    for (const listener of this.listeners) listener.settingsChanged();
  }

  close(): void {
    this.isClosed = true;
    this.file?.close();
    this.file = undefined;
  }

  private get isOn(): boolean {
    return this.settings.flows === "Enabled";
  }

  /** A former agent may have switched flows on already, or off. */
  private noteSwitch(): void {
    const { labelProblem, report, clock, path } = this.options;
    if (!this.isOn) {
      this.isLabelMissing = false;
      if (this.file !== undefined || existsSync(path)) this.openFile()?.setSince(undefined);
    } else if (labelProblem !== undefined) {
      report(labelProblem);
    } else if (!this.isLabelMissing) {
      const file = this.openFile();
      if (file === undefined) this.isLabelMissing = true;
      else file.setSince(file.since ?? clock.now().getTime());
    }
  }

  private numberOf(comment: string): ReturnType<RuleNumberFile["numberOf"]> {
    try {
      return this.openFile()?.numberOf(comment);
    } catch (failure) {
      this.fail(failure);
      return undefined;
    }
  }

  /** `undefined` while it cannot be opened: it is tried again later. */
  private openFile(): RuleNumberFile | undefined {
    if (this.file !== undefined || this.isLooking || this.isClosed) return this.file;
    const { elapsed } = this.options.clock;
    if (this.failedAt !== undefined && elapsed() - this.failedAt < PAUSE_MILLISECONDS) return undefined;
    try {
      this.file = openRuleNumbers({ ...this.options, elapsed });
      if (this.file === undefined) this.look();
    } catch (failure) {
      this.fail(failure);
    }
    return this.file;
  }

  private look(): void {
    const { highestInKernel, clock } = this.options;
    const steps = highestInKernel();
    let step = steps.next();
    // The first step reads the rules, as whoever takes over the table does too.
    for (const begun = clock.elapsed(); ; step = steps.next()) {
      if (step.done === true) {
        this.found(step.value);
        return;
      }
      if (clock.elapsed() - begun >= LOOK_MILLISECONDS) break;
    }
    this.isLooking = true;
    this.lookOn(steps)
      .catch((failure: unknown) => this.fail(failure))
      .finally(() => {
        this.isLooking = false;
      });
  }

  private async lookOn(steps: Iterator<undefined, number>): Promise<void> {
    for (;;) {
      await nextTurn();
      if (this.isClosed) {
        steps.return?.(0);
        return;
      }
      const step = steps.next();
      if (step.done !== true) continue;
      this.found(step.value);
      return;
    }
  }

  private found(highest: number): void {
    this.file = openRuleNumbers({ ...this.options, elapsed: this.options.clock.elapsed }, highest);
  }

  private fail(failure: unknown): void {
    const { report, path, clock } = this.options;
    this.failedAt = clock.elapsed();
    report(
      `The numbers of rules in ${quoted(path)} cannot be used: ${describeFailure(failure)}: flows do not name the rules of new connections until they can`,
    );
  }

  private announce(): void {
    const rules = this.unannounced;
    this.unannounced = [];
    if (rules.length > 0) for (const listener of this.listeners) listener.added(rules);
  }
}

function sumDenied(counts: readonly RuleCount[]): ReturnType<FlowRules["denied"]> {
  const sums = new Map<string, number>();
  for (const { comment = INVALID_STATE, verdict, packets } of counts)
    if (verdict === "drop") sums.set(comment, (sums.get(comment) ?? 0) + packets);
  return [...sums];
}
