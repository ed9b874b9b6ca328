/** The alert rules use metrics that exist, in expressions that Prometheus can parse, and lead to docs that exist. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { metricsText as agentMetrics } from "../../src/agent/policy/facts.ts";
import { metricsText as controllerMetrics } from "../../src/controllers/report.ts";
import { identity } from "../../src/identity.ts";
import { alertGroups, alertsName } from "../../src/release/alerts.ts";
import { type PromqlNode, parsePromql } from "../support/promql.ts";

const ROOT = join(import.meta.dir, "../..");
const rules = alertGroups(identity).flatMap((group) => group.rules);

/** The text of a program with something of everything; its samples do not matter. */
const METRICS = [
  controllerMetrics({
    controllers: [],
    collector: {
      candidates: 0,
      overdue: new Map(),
      releasedAddresses: 0,
      releasedBlocks: 0,
      freedKept: 0,
      errors: 0,
      heldRemovals: 0,
    },
    usage: { pools: [], nodes: [] },
    isLeading: true,
    clusterMismatch: undefined,
    isDatastoreLocked: false,
    unconfirmedCluster: undefined,
    electedAt: 0,
    now: 0,
  }),
  agentMetrics({
    endpoints: 0,
    hostEndpoints: 0,
    policies: 0,
    problems: 0,
    refusedClaims: [],
    table: { chains: new Map(), sets: new Map() },
    datastore: { state: "in sync" },
    batches: { count: 0, milliseconds: 0, replacements: 0 },
    waiting: { namespaces: 0, milliseconds: 0 },
    traffic: () => ({ policies: [], drops: [] }),
    isApplied: true,
    now: 0,
    checkedAt: 0,
  } as unknown as Parameters<typeof agentMetrics>[0]),
].join("");
const known = new Set([...METRICS.matchAll(/^# TYPE (\S+) /gm)].map(([, name = ""]) => name));

function metricsIn(node: PromqlNode): readonly string[] {
  return node.kind === "metric" ? [node.name] : "parts" in node ? node.parts.flatMap(metricsIn) : [];
}

const slug = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");

describe("the alert rules", () => {
  test("are those of the file", () => {
    const file = Bun.YAML.parse(readFileSync(join(ROOT, `deploy/alerts/${alertsName(identity)}.yaml`), "utf8"));

    expect(file).toEqual({ groups: alertGroups(identity) } as never);
  });

  test.each(rules.map((rule) => [rule.alert, rule] as const))("%s", (_, rule) => {
    const metrics = metricsIn(parsePromql(rule.expr));

    expect(metrics.length).toBeGreaterThan(0);
    expect(metrics.filter((name) => !known.has(name))).toEqual([]);
    expect(rule.for).toMatch(/^\d+[smh]$/);
    const [page = "", heading] = rule.annotations.runbook.split("#");
    const text = readFileSync(join(ROOT, page), "utf8");
    const section = text.split(/^## /m).find((each) => slug(each.slice(0, each.indexOf("\n"))) === heading);
    expect(section).toContain(rule.alert);
  });

  test("have one name each", () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  });
});

describe("the parser of the test", () => {
  test.each(["a >", "sum by pool (a)", "a[5m", "rate(a[5])", "a and", "(a", "a b", "unknown(a)", "a > 0.8 0.9"])(
    "refuses %s",
    (text) => {
      expect(() => parsePromql(text)).toThrow();
    },
  );
});
