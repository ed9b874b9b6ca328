/** Serves health and metrics where the configuration of the agent says, and follows its changes. */
import { LocalServer } from "../../health/local-server.ts";
import { healthPages, metricsPages } from "../../health/pages.ts";
import type { NodeAgentSettings } from "../../model/node-agent-configuration.ts";
import { livenessOf, metricsText, type PolicyFacts, readinessOf } from "./facts.ts";

const FOLLOW_MILLISECONDS = 5_000;

export interface ServeMeans {
  readonly facts: () => PolicyFacts;
  readonly settings: () => NodeAgentSettings;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
  readonly report: (message: string) => void;
}

/** Resolves when the signal is aborted. */
export async function serveFacts({ facts, settings, wait, signal, report }: ServeMeans): Promise<void> {
  const pages = { liveness: () => livenessOf(facts()), readiness: () => readinessOf(facts()) };
  const health = new LocalServer(healthPages(pages), report);
  const metrics = new LocalServer(
    metricsPages(() => metricsText(facts())),
    report,
  );
  while (!signal.aborted) {
    const { healthEnabled, healthHost, healthPort, ...more } = settings();
    health.listen(healthEnabled ? { host: healthHost, port: healthPort } : undefined);
    const metricsAddress = { host: more.prometheusMetricsHost, port: more.prometheusMetricsPort };
    metrics.listen(more.prometheusMetricsEnabled ? metricsAddress : undefined);
    await wait(FOLLOW_MILLISECONDS, signal);
  }
  health.close();
  metrics.close();
}
