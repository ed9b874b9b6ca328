/** What the operator says about itself: health and metrics, as text. Pure. */
import { type MetricType, metricText, type Sample } from "../health/metrics.ts";
import type { HealthReply } from "../health/pages.ts";
import { identity } from "../identity.ts";
import type { OperatorState } from "./run-operator.ts";

export interface OperatorReport {
  readonly state: OperatorState;
  readonly isLeading: boolean;
  /** When the lease was last asked for, in milliseconds. */
  readonly electedAt: number;
  /** Monotonic milliseconds. */
  readonly now: number;
}

/** Every replica asks for the lease all the time, whoever holds it. */
const HANGING_MILLISECONDS = 60_000;

/** The lease is renewed meanwhile, so no standby would take over. */
const HANGING_PASS_MILLISECONDS = 5 * 60_000;

export function livenessOf({ now, electedAt, state }: OperatorReport): HealthReply {
  const passing = now - (state.passStartedAt ?? now);
  if (passing > HANGING_PASS_MILLISECONDS) {
    return { status: 503, text: `a comparison has been running for ${Math.round(passing / 1_000)} s` };
  }
  if (now - electedAt <= HANGING_MILLISECONDS) return { status: 200, text: "live" };
  return { status: 503, text: `the lease has not been asked for since ${Math.round((now - electedAt) / 1_000)} s` };
}

/** A standby is ready too: it knows everything, and only does not write. */
export function readinessOf({ state }: OperatorReport): HealthReply {
  if (state.isListed) return { status: 200, text: "ready" };
  return { status: 503, text: "the objects of the cluster are not known yet" };
}

export function metricsText({ state, isLeading }: OperatorReport): string {
  const { passes, failures, lastFailure } = state;
  return [
    metric("leader", "gauge", "1 if this process writes", isLeading ? 1 : 0),
    metric("passes_total", "counter", "Comparisons of the cluster with the Installation", passes),
    metric("errors_total", "counter", "Comparisons that failed", failures),
    metric("failing", "gauge", "1 if the last comparison failed", lastFailure === "" ? 0 : 1),
  ].join("");
}

function metric(name: string, type: MetricType, help: string, value: number): string {
  const samples: readonly Sample[] = [["", value]];
  return metricText(identity.operator, { name, type, help }, samples);
}
