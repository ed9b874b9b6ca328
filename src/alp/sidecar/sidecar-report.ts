/** What the sidecar says about itself: health and metrics, as text. Pure. */
import { labelsOf, type MetricType, metricText, type Sample } from "../../health/metrics.ts";
import type { HealthReply } from "../../health/pages.ts";
import { identity } from "../../identity.ts";
import type { Verdict } from "./decision-counters.ts";

export interface SidecarReport {
  /** Of the last update; 0 if there are no policies to decide with. */
  readonly revision: number;
  readonly updates: number;
  /** Absent while the node agent is connected. */
  readonly disconnectedSeconds?: number;
  /** Present if they were dropped: why. */
  readonly droppedBecause?: string;
  readonly isStopping: boolean;
  readonly decisions: Readonly<Record<Verdict, number>>;
  readonly decisionSeconds: number;
  /** Of Envoy. */
  readonly proxyConnections: number;
  readonly residentBytes: number;
}

/** Whoever can respond is alive: a sidecar without its agent would not be better after a restart, which loses its state. */
export const LIVE: HealthReply = { status: 200, text: "live" };

/** A sidecar that has lost its agent stays ready: it decides with its last state. */
export function readinessOf({
  revision,
  droppedBecause,
  isStopping,
}: Pick<SidecarReport, "revision" | "droppedBecause" | "isStopping">): HealthReply {
  if (isStopping) return { status: 503, text: "stopping" };
  if (revision > 0) return { status: 200, text: "ready" };
  const reason = droppedBecause ?? "the node agent has not sent the policies yet";
  return { status: 503, text: `all requests are denied: ${reason}` };
}

export function metricsText(report: SidecarReport): string {
  const { decisions, disconnectedSeconds } = report;
  const samples = Object.entries(decisions).map(
    ([verdict, count]): Sample => [labelsOf({ verdict: verdict.replaceAll(" ", "-") }), count],
  );
  const agent = disconnectedSeconds === undefined;
  return [
    metric("decisions_total", "counter", "Decisions about requests and connections", samples),
    single("decision_seconds_total", "counter", "Time that the decisions took", report.decisionSeconds),
    single("state_revision", "gauge", "Revision of the policies; 0 without policies", report.revision),
    single("updates_total", "counter", "Updates of the policies that were applied", report.updates),
    single("agent_connected", "gauge", "1 if the node agent is connected and its policies are applied", agent ? 1 : 0),
    single("agent_disconnected_seconds", "gauge", "Time without the node agent", disconnectedSeconds ?? 0),
    single("proxy_connections", "gauge", "Connections of the proxy", report.proxyConnections),
    single("resident_memory_bytes", "gauge", "Memory of the process", report.residentBytes),
  ].join("");
}

function single(name: string, type: MetricType, help: string, value: number): string {
  return metric(name, type, help, [["", value]]);
}

function metric(name: string, type: MetricType, help: string, samples: readonly Sample[]): string {
  return metricText(identity.sidecar, { name, type, help }, samples);
}
