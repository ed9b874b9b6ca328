/** Serves health and metrics where the configuration of the agent says, and follows its changes. */

import { LocalServer } from "../../health/local-server.ts";
import { type HealthReply, healthPages, metricsPages } from "../../health/pages.ts";
import type { Watch } from "../../health/watchdog.ts";
import type { NodeAgentSettings } from "../../model/node-agent-configuration.ts";
import { type ServedCalls, servedCallMetrics } from "../calls/served-calls.ts";
import { type RoutingFacts, routingMetrics, routingReadiness } from "../node-routes/routing-facts.ts";
import { livenessOf, metricsText, type PolicyFacts, readinessOf } from "./facts.ts";

const FOLLOW_MILLISECONDS = 5_000;

export interface ServeMeans {
  readonly facts: () => PolicyFacts;
  /** `undefined`: there are no other nodes in this datastore. */
  readonly routing: () => RoutingFacts | undefined;
  readonly servedCalls: () => readonly ServedCalls[];
  /** Metrics in the text format of Prometheus. */
  readonly ofFeatures: () => string;
  /** Asks for the liveness meanwhile. */
  readonly watch: Pick<Watch, "ask">;
  readonly settings: () => NodeAgentSettings;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
  readonly report: (message: string) => void;
}

/** Resolves when the signal is aborted. */
export async function serveFacts(means: ServeMeans): Promise<void> {
  const { facts, routing, servedCalls, ofFeatures, watch, settings, wait, signal, report } = means;
  const pages = { liveness: () => livenessOf(facts()), readiness: () => bothReady(facts(), routing()) };
  const health = new LocalServer(healthPages(pages), report);
  const metrics = new LocalServer(
    metricsPages(() => `${metricsOf(facts(), routing())}${ofFeatures()}${servedCallMetrics(servedCalls())}`),
    report,
  );
  watch.ask(pages.liveness);
  try {
    while (!signal.aborted) {
      const { healthEnabled, healthHost, healthPort, ...more } = settings();
      health.listen(healthEnabled ? { host: healthHost, port: healthPort } : undefined);
      const metricsAddress = { host: more.prometheusMetricsHost, port: more.prometheusMetricsPort };
      metrics.listen(more.prometheusMetricsEnabled ? metricsAddress : undefined);
      await wait(FOLLOW_MILLISECONDS, signal);
    }
  } finally {
    watch.ask(undefined);
    health.close();
    metrics.close();
  }
}

function bothReady(facts: PolicyFacts, routing: RoutingFacts | undefined): HealthReply {
  const policy = readinessOf(facts);
  return policy.status !== 200 || routing === undefined ? policy : (routingReadiness(routing) ?? policy);
}

function metricsOf(facts: PolicyFacts, routing: RoutingFacts | undefined): string {
  return `${metricsText(facts)}${routing === undefined ? "" : routingMetrics(routing, facts.now)}`;
}
