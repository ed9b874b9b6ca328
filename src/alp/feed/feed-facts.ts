/** What the agent says about the sidecars of its pods, as metrics. Pure. */
import { labelsOf, metricText } from "../../health/metrics.ts";
import { identity } from "../../identity.ts";
import type { FeedFacts } from "./sidecar-feed.ts";

/** In the text format of Prometheus. */
export function feedMetrics({ reporting, updates, refused }: FeedFacts): string {
  const rows = [
    ["sidecars", "gauge", "Sidecars of this node that report and decide about requests", [["", reporting]]],
    ["sidecar_updates_total", "counter", "Updates that were sent to sidecars", [["", updates]]],
    [
      "sidecar_connections_refused_total",
      "counter",
      "Connections to the sockets of sidecars that the agent has ended",
      Array.from(refused, ([reason, count]) => [labelsOf({ reason }), count] as const),
    ],
  ] as const;
  return rows
    .map(([name, type, help, samples]) => metricText(identity.nodeAgent, { name, type, help }, samples))
    .join("");
}
