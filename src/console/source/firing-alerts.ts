/**
 * What Prometheus says that fires, of the rules that this product ships: the answer of `/api/v1/alerts` as problems of health. Whoever
 * may write rules there chooses their texts: they are shown as words, never as a command to copy, and no longer than a line. Pure.
 */
import * as v from "valibot";
import { counted } from "../../counted.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { decodeShape } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";
import { shortValue } from "../../quote.ts";
import { type AlertRule, alertGroups } from "../../release/alerts.ts";
import type { HealthPart, HealthProblem } from "../api/health.ts";
import { gravest } from "./health-words.ts";

export interface FiringAlert {
  readonly problem: HealthProblem;
  /** Names or addresses of the node that it is about, the best first; none if the rule is not about a node. */
  readonly places: readonly string[];
}

export interface FiringAlerts {
  /** The gravest first; each text once. */
  readonly alerts: readonly FiringAlert[];
  /** Those that are left out besides. */
  readonly more: number;
}

export type AlertsFound =
  | ({ readonly kind: "firing" } & FiringAlerts)
  /** The reader may not ask. */
  | { readonly kind: "hidden"; readonly what: string }
  | { readonly kind: "unknown"; readonly reason: string };

/** Health is a page: with more alerts, one looks at Prometheus itself. */
const MOST_ALERTS = 100;

const optionalText = v.optional(v.string(), "");
const answerShape = v.object({
  status: v.literal("success"),
  data: v.object({
    alerts: v.array(
      v.object({
        state: v.string(),
        labels: v.object({
          alertname: v.string(),
          severity: optionalText,
          node: optionalText,
          instance: optionalText,
        }),
        annotations: v.optional(v.object({ summary: optionalText, runbook: optionalText }), {}),
        activeAt: optionalText,
      }),
    ),
  }),
});
type Alert = v.InferOutput<typeof answerShape>["data"]["alerts"][number];

const RULES: ReadonlyMap<string, AlertRule> = new Map(
  alertGroups(identity).flatMap(({ rules }) => rules.map((rule) => [rule.alert, rule] as const)),
);

/** Throws if the text is not an answer of Prometheus. */
export function readFiringAlerts(text: string, now: Date): FiringAlerts {
  const firing = alertsIn(text).flatMap((alert) => {
    const rule = alert.state === "firing" ? RULES.get(alert.labels.alertname) : undefined;
    return rule === undefined ? [] : [firingAlert(alert, rule, now)];
  });
  const different = [...firing.toSorted(byGravity).reduce(keepFirst, new Map<string, FiringAlert>()).values()];
  return { alerts: different.slice(0, MOST_ALERTS), more: Math.max(0, different.length - MOST_ALERTS) };
}

function alertsIn(text: string): readonly Alert[] {
  let answer: unknown;
  try {
    answer = parseJson(text);
  } catch (cause) {
    throw new PluginError("api-unavailable", "the answer is not JSON", { cause });
  }
  const shape = decodeShape(answerShape, answer);
  if (shape.ok) return shape.value.data.alerts;
  const [first] = shape.problems;
  throw new PluginError("api-unavailable", `the answer is not that of Prometheus: see "${first?.path ?? ""}" in it`);
}

function firingAlert({ labels, annotations, activeAt }: Alert, rule: AlertRule, now: Date): FiringAlert {
  const severity = labels.severity === "critical" || labels.severity === "warning" ? labels.severity : undefined;
  const summary = line(annotations.summary ?? "");
  const runbook = line(annotations.runbook ?? "");
  const since = Date.parse(activeAt);
  return {
    problem: {
      state: (severity ?? rule.labels.severity) === "critical" ? "failed" : "warning",
      message: `Prometheus alert ${rule.alert}${summary === "" ? "" : `: ${summary}`}`,
      remedy: `see ${runbook === "" ? rule.annotations.runbook : runbook}`,
      ...(Number.isNaN(since) ? {} : { since: Math.min(since, now.getTime()) }),
    },
    places: placesOf(labels, rule),
  };
}

/** Without what changes how a text is shown: line breaks, invisible characters, a change of direction. */
function line(text: string): string {
  return shortValue(
    text
      .slice(0, LONGEST_TEXT)
      .replaceAll(/[\p{C}\p{Z}]+/gu, " ")
      .trim(),
  );
}

const LONGEST_TEXT = 2_000;

/** A rule is about a node if its own summary names the node by a label; `instance` of others is a controller. */
function placesOf({ node, instance }: Alert["labels"], { annotations }: AlertRule): readonly string[] {
  if (!/\$labels\.(node|instance)\b/.test(annotations.summary)) return [];
  const host = /^(?:\[([^\]]+)\]|([^:]+))(?::\d+)?$/.exec(instance);
  return [node, host?.[1] ?? host?.[2] ?? ""].filter((place) => place !== "");
}

function byGravity({ problem: one }: FiringAlert, { problem: other }: FiringAlert): number {
  const gravity = (state: HealthProblem["state"]) => (state === "failed" ? 0 : 1);
  return gravity(one.state) - gravity(other.state) || (one.since ?? 0) - (other.since ?? 0);
}

/** Several replicas of the controllers, or of Prometheus, say the same. */
function keepFirst(kept: Map<string, FiringAlert>, alert: FiringAlert): Map<string, FiringAlert> {
  const key = JSON.stringify([alert.problem.message, alert.places]);
  return kept.has(key) ? kept : kept.set(key, alert);
}

export function alertsPart(found: AlertsFound, knownAt: number): readonly HealthPart[] {
  if (found.kind === "hidden") return [];
  const part = { name: "alerts", knownAt } as const;
  if (found.kind === "unknown") return [{ ...part, state: "unknown", detail: found.reason }];
  const { alerts, more } = found;
  const left = more === 0 ? "" : `; the ${alerts.length} gravest are shown`;
  const detail = alerts.length === 0 ? "none fires" : `${counted(alerts.length + more, "alert")}${left}`;
  return [{ ...part, state: gravest(["ok", ...alerts.map(({ problem }) => problem.state)]), detail }];
}

/** `nodes`: those that the reader may see, with their addresses. The other alerts are about the cluster, or have no known node. */
export function alertsByNode(
  found: AlertsFound | undefined,
  nodes: readonly { readonly name: string; readonly addresses: readonly string[] }[],
): ReadonlyMap<string | undefined, readonly HealthProblem[]> {
  if (found?.kind !== "firing") return new Map();
  const names = new Map(nodes.flatMap(({ name, addresses }) => addresses.map((address) => [address, name] as const)));
  for (const { name } of nodes) names.set(name, name);
  const nodeOf = ({ places }: FiringAlert) =>
    places.map((place) => names.get(place)).find((name) => name !== undefined);
  const groups = Map.groupBy(found.alerts, nodeOf);
  return new Map([...groups].map(([node, alerts]) => [node, alerts.map(({ problem }) => problem)]));
}
