/** Serves health and metrics, as the settings say. */
import { LocalServer } from "../health/local-server.ts";
import { healthPages, metricsPages } from "../health/pages.ts";
import { type ControllersReport, livenessOf, metricsText, readinessOf } from "./report.ts";
import type { RunningConfiguration } from "./settings.ts";

const ALL_ADDRESSES = "";

export class ReportServer {
  private readonly health: LocalServer;
  private readonly metrics: LocalServer;
  private wanted: RunningConfiguration | undefined;

  constructor(
    reportNow: () => ControllersReport,
    private readonly healthPort: number,
    problem: (message: string) => void,
  ) {
    const reported = new Set<string>();
    const reportOnce = (message: string) => {
      if (!reported.has(message)) problem(message);
      reported.add(message);
    };
    const pages = { liveness: () => livenessOf(reportNow()), readiness: () => readinessOf(reportNow()) };
    this.health = new LocalServer(healthPages(pages), reportOnce);
    this.metrics = new LocalServer(
      metricsPages(() => metricsText(reportNow())),
      reportOnce,
    );
  }

  listen(wanted: RunningConfiguration): void {
    this.wanted = wanted;
    this.listenAgain();
  }

  /** Tries ports again that were in use: in the network of the host, another replica may have ended. */
  listenAgain(): void {
    if (this.wanted === undefined) return;
    const { healthChecks, prometheusMetricsPort: port } = this.wanted;
    const isChecked = healthChecks === "Enabled";
    this.health.listen(isChecked ? { host: ALL_ADDRESSES, port: this.healthPort } : undefined);
    this.metrics.listen(port === 0 ? undefined : { host: ALL_ADDRESSES, port });
  }

  close(): void {
    this.wanted = undefined;
    this.health.close();
    this.metrics.close();
  }
}
