/**
 * What the enforcement of policy and the part that observes flows know of each other. Either may fail and be started again
 * while the other one goes on.
 */

import type { FlowLosses } from "../../flows/flow-record.ts";
import { labelsOf, metricText } from "../../health/metrics.ts";
import { identity } from "../../identity.ts";
import type { FlowRules } from "../policy/flow-rules.ts";

/** What the collector said last. */
export interface CollectorFacts {
  readonly losses: FlowLosses;
  /** In the text format of Prometheus. */
  readonly metrics: string;
}

export class FlowsOfNode {
  /** `undefined` while no collector runs. */
  facts: CollectorFacts | undefined;
  /** How often a collector was started. */
  starts = 0;
  /** Names that were asked for faster than they could be answered. */
  unansweredNames = 0;
  /** Whether flows are switched on. */
  isOn = false;
  private offered: FlowRules | undefined;
  private readonly listeners = new Set<(rules: FlowRules | undefined) => void>();

  /** Of the enforcement that runs now. The returned function ends it. */
  offerRules(rules: FlowRules): () => void {
    this.setRules(rules);
    return () => {
      if (this.offered === rules) this.setRules(undefined);
    };
  }

  /** Calls the listener now and at each change, until the returned function is called. */
  followRules(listener: (rules: FlowRules | undefined) => void): () => void {
    this.listeners.add(listener);
    listener(this.offered);
    return () => void this.listeners.delete(listener);
  }

  /** In the text format of Prometheus; empty while flows are switched off. */
  metrics(): string {
    if (!this.isOn) return "";
    const { facts } = this;
    const rows = [
      ["flow_collector_running", "gauge", "1 if a collector of flows runs", facts === undefined ? 0 : 1],
      ["flow_collector_starts_total", "counter", "How often a collector of flows was started", this.starts],
    ] as const;
    const own = rows.map(([name, type, help, value]) =>
      metricText(identity.nodeAgent, { name, type, help }, [["", value]]),
    );
    const losses = metricText(
      identity.nodeAgent,
      { name: "flow_losses_total", type: "counter", help: "What is missing in the flows of this node, by reason" },
      [...lossRows(facts), ["names not answered", this.unansweredNames] as const].map(([reason, value]) => [
        labelsOf({ reason }),
        value,
      ]),
    );
    return `${own.join("")}${losses}${facts === undefined ? "" : gapText(facts.losses)}${facts?.metrics ?? ""}`;
  }

  private setRules(rules: FlowRules | undefined): void {
    this.offered = rules;
    for (const listener of this.listeners) listener(rules);
  }
}

/** Also a decrease is possible: the history before the gap may be gone. */
function gapText({ withoutCollector }: FlowLosses): string {
  const help = "Time without a collector though flows were switched on, as far as the history goes back";
  const metric = { name: "flow_without_collector_seconds", type: "gauge", help } as const;
  return metricText(identity.nodeAgent, metric, [["", withoutCollector / 1_000]]);
}

const LOSSES: { readonly [Loss in Exclude<keyof FlowLosses, "withoutCollector">]: string } = {
  kernelOverruns: "kernel buffer overrun",
  rulesUnknown: "rule unknown",
  overLimit: "over the limit per second",
  overCapacity: "over the capacity of the collector",
  deniedSuppressed: "denied packets beyond the limit of their rule",
  namesUnknown: "names unknown",
  notStored: "not stored in the history",
  notLogged: "not written to the log file",
  stagedNotJudged: "staged policies not judged",
};

function lossRows(facts: CollectorFacts | undefined): readonly (readonly [reason: string, value: number])[] {
  if (facts === undefined) return [];
  const { losses } = facts;
  return [
    [LOSSES.kernelOverruns, losses.kernelOverruns],
    [LOSSES.rulesUnknown, losses.rulesUnknown],
    [LOSSES.overLimit, losses.overLimit],
    [LOSSES.overCapacity, losses.overCapacity],
    [LOSSES.deniedSuppressed, losses.deniedSuppressed],
    [LOSSES.namesUnknown, losses.namesUnknown],
    [LOSSES.notStored, losses.notStored],
    [LOSSES.notLogged, losses.notLogged],
    [LOSSES.stagedNotJudged, losses.stagedNotJudged ?? 0],
  ];
}
