/**
 * What is counted of flows, in the text format of Prometheus: a bounded number of metrics, however many pods there
 * are. What is lost is shown by the agent (flows-of-node.ts).
 */
import type { FlowRecord } from "../../../flows/flow-record.ts";
import { labelsOf, metricText, type Sample } from "../../../health/metrics.ts";
import { identity } from "../../../identity.ts";

/** What the collector knows. */
export interface FlowFacts {
  /** Connections that it follows. */
  readonly open: number;
}

interface AllFacts extends FlowFacts {
  /** Absent: there is none. */
  readonly history?: { readonly bytes: number; readonly milliseconds: number };
}

export class FlowCounters {
  private readonly begunCounts = new Map<string, number>();
  private readonly endedCounts = new Map<string, number>();
  private readonly stagedCounts = new Map<string, number>();
  private deniedPackets = 0;

  /** A connection that was not known before. */
  begun(record: FlowRecord): void {
    if (record.state === "denied") return;
    count(this.begunCounts, record);
    if (record.staged !== undefined)
      add(this.stagedCounts, labelsOf({ verdict: record.verdict, staged: record.staged.verdict }));
  }

  ended(record: FlowRecord): void {
    count(this.endedCounts, record);
  }

  denied(packets: number): void {
    this.deniedPackets += packets;
  }

  text({ open, history }: AllFacts): string {
    return [
      counter("flows_begun_total", "Connections that were seen for the first time", samplesOf(this.begunCounts)),
      counter("flows_ended_total", "Connections that have ended", samplesOf(this.endedCounts)),
      counter("flows_denied_packets_total", "Packets that policy has denied, as far as they were reported", [
        ["", this.deniedPackets],
      ]),
      ...(this.stagedCounts.size === 0
        ? []
        : [
            counter(
              "flows_staged_total",
              "Connections that were seen for the first time, by what staged policies would decide",
              samplesOf(this.stagedCounts),
            ),
          ]),
      gauge("flows_open_connections", "Connections that are followed", [["", open]]),
      ...(history === undefined ? [] : historyTexts(history)),
    ].join("");
  }
}

function historyTexts({ bytes, milliseconds }: NonNullable<AllFacts["history"]>): readonly string[] {
  return [
    gauge("flows_history_bytes", "Size of the history of flows", [["", bytes]]),
    gauge("flows_history_seconds", "Age of the oldest flow that is kept", [["", milliseconds / 1_000]]),
  ];
}

function count(counts: Map<string, number>, { verdict, direction }: FlowRecord): void {
  add(counts, labelsOf({ verdict, direction }));
}

function add(counts: Map<string, number>, labels: string): void {
  counts.set(labels, (counts.get(labels) ?? 0) + 1);
}

function samplesOf(counts: ReadonlyMap<string, number>): readonly Sample[] {
  return counts.size === 0 ? [["", 0]] : [...counts];
}

function counter(name: string, help: string, samples: readonly Sample[]): string {
  return metricText(identity.nodeAgent, { name, type: "counter", help }, samples);
}

function gauge(name: string, help: string, samples: readonly Sample[]): string {
  return metricText(identity.nodeAgent, { name, type: "gauge", help }, samples);
}
