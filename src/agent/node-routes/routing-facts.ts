/** What the agent says about routes between nodes: metrics as text, and whether they are set. Pure. */
import { metricText } from "../../health/metrics.ts";
import type { HealthReply } from "../../health/pages.ts";
import { identity } from "../../identity.ts";

export interface RoutingFacts {
  /** Whether the settings of the agent say that it sets routes. */
  readonly isEnabled: boolean;
  /** Routes to other nodes and blackholes that the kernel has. */
  readonly routes: number;
  /** Other ends of VXLAN tunnels. */
  readonly peers: number;
  readonly problems: number;
  /** When the kernel was last compared with the plan or given a change of it, in monotonic milliseconds; `undefined`: not yet. */
  readonly appliedAt: number | undefined;
}

/** Not ready until the routes of the first plan are set. */
export function routingReadiness({ appliedAt }: RoutingFacts): HealthReply | undefined {
  return appliedAt === undefined ? { status: 503, text: "the routes to other nodes are not set yet" } : undefined;
}

/** Whether the agent routes the pods of its node: then others may rely on it. */
export function arePodsRouted({ isEnabled, appliedAt }: RoutingFacts): boolean {
  return isEnabled && appliedAt !== undefined;
}

export function routingMetrics({ routes, peers, problems, appliedAt }: RoutingFacts, now: number): string {
  const rows: readonly (readonly [name: string, help: string, value: number])[] = [
    ["routes", "Routes to other nodes and blackholes of own blocks that are set", routes],
    ["tunnel_peers", "Other ends of VXLAN tunnels that are set", peers],
    ["routing_problems", "Reasons why routes to other nodes cannot be set", problems],
  ];
  const gauge = (name: string, help: string, value: number) =>
    metricText(identity.nodeAgent, { name, type: "gauge", help }, [["", value]]);
  const help = "Time since routes to other nodes were last set or compared";
  return [
    ...rows.map((row) => gauge(...row)),
    ...(appliedAt === undefined ? [] : [gauge("routing_sync_seconds", help, (now - appliedAt) / 1_000)]),
  ].join("");
}
