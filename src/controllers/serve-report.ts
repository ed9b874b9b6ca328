/** Serves health and metrics, as the settings say. */
import { LocalServer } from "../health/local-server.ts";
import { healthPages, metricsPages } from "../health/pages.ts";
import { type ControllersReport, livenessOf, metricsText, readinessOf } from "./report.ts";
import type { RunningConfiguration } from "./settings.ts";

const ALL_ADDRESSES = "";

export class ReportServer {
  private readonly health: LocalServer;
  private readonly metrics: LocalServer;

  constructor(
    reportNow: () => ControllersReport,
    private readonly healthPort: number,
    problem: (message: string) => void,
  ) {
    const pages = { liveness: () => livenessOf(reportNow()), readiness: () => readinessOf(reportNow()) };
    this.health = new LocalServer(healthPages(pages), problem);
    this.metrics = new LocalServer(
      metricsPages(() => metricsText(reportNow())),
      problem,
    );
  }

  listen({ healthChecks, prometheusMetricsPort: port }: RunningConfiguration): void {
    const isChecked = healthChecks === "Enabled";
    this.health.listen(isChecked ? { host: ALL_ADDRESSES, port: this.healthPort } : undefined);
    this.metrics.listen(port === 0 ? undefined : { host: ALL_ADDRESSES, port });
  }

  close(): void {
    this.health.close();
    this.metrics.close();
  }
}
