import { describe, expect, test } from "bun:test";
import { PluginError } from "../../errors.ts";
import { livenessOf, metricsText, type PolicyFacts, readinessOf } from "./facts.ts";

const FACTS: PolicyFacts = {
  endpoints: 2,
  hostEndpoints: 0,
  policies: 3,
  problems: 1,
  refusedClaims: [{ namespace: "shop", pod: "web", refused: ["address 10.0.0.9/32: …", "floating IP 192.0.2.1: …"] }],
  table: { chains: new Map(), sets: new Map() },
  datastore: { state: "in sync", since: 0, heardAt: 0 },
  batches: { count: 4, milliseconds: 250, replacements: 1 },
  waiting: { namespaces: 2, milliseconds: 1_500 },
  traffic: () => ({
    policies: [
      { policy: "shop/db", direction: "ingress", action: "deny", packets: 3, bytes: 180 },
      { policy: "shop/db", direction: "ingress", action: "log", packets: 2, bytes: 120 },
    ],
    drops: [{ reason: 'the end of tier "default"', packets: 1, bytes: 60 }],
  }),
  isApplied: true,
  now: 40_000,
  checkedAt: 39_500,
};

describe("livenessOf()", () => {
  test.each([
    [39_500, 200],
    [1_000, 503],
  ])("last run at %p: %p", (checkedAt, status) => {
    expect(livenessOf({ ...FACTS, checkedAt }).status).toBe(status as 200);
  });
});

describe("readinessOf()", () => {
  test("is ready once the rules are set, also if the datastore was lost a moment ago", () => {
    expect(readinessOf({ ...FACTS, datastore: { state: "stale", since: 39_000, heardAt: 39_000 } }).status).toBe(200);
  });

  const failure = new PluginError("datastore-unavailable", "Cannot reach etcd");
  test.each([
    [{ state: "stale", since: 90_000, heardAt: 30_000, failure } as const, ": Cannot reach etcd"],
    // A watch that is open and silent.
    [{ state: "in sync", since: 0, heardAt: 30_000 } as const, ""],
  ])("is not ready if what it knows is older than five minutes, and still live (%#)", (datastore, reason) => {
    const now = 30_000 + 301_000;
    const facts = { ...FACTS, datastore, now, checkedAt: now };

    expect(readinessOf(facts)).toEqual({ status: 503, text: `the datastore was last heard 301 s ago${reason}` });
    expect(livenessOf(facts).status).toBe(200);
  });

  test("names the reason if the rules are not set", () => {
    const failure = new PluginError("datastore-unavailable", "Cannot reach etcd");
    const datastore = { state: "listing", since: 0, failure } as const;

    expect(readinessOf({ ...FACTS, isApplied: false, datastore })).toEqual({
      status: 503,
      text: "the rules are not set yet: Cannot reach etcd",
    });
  });
});

describe("metricsText()", () => {
  test("tells that the blocks are not followed, from which routes are made; that alone makes no agent unready", () => {
    const blocks = { state: "stale", since: 30_000, heardAt: 10_000 } as const;
    const datastore = { state: "in sync", since: 0, heardAt: 39_000 } as const;
    const facts = { ...FACTS, datastore, blocks, now: 400_000 };
    const lines = metricsText(facts).split("\n");

    expect(lines).toContain("vendor_node_datastore_in_sync 0");
    expect(lines).toContain("vendor_node_datastore_lag_seconds 370");
    expect(lines).toContain("vendor_node_datastore_age_seconds 390");
    expect(readinessOf({ ...facts, datastore: { ...datastore, heardAt: 399_000 } }).status).toBe(200);
  });

  test("is what Prometheus reads", () => {
    const datastore = { state: "stale", since: 38_000, heardAt: 20_000 } as const;
    const lines = metricsText({ ...FACTS, datastore }).split("\n");

    expect(lines).toContain("# TYPE vendor_node_policies gauge");
    expect(lines).toContain("vendor_node_policies 3");
    expect(lines).toContain('vendor_node_refused_claims{namespace="shop",pod="web"} 2');
    expect(lines).toContain("vendor_node_batch_seconds_total 0.25");
    expect(lines).toContain("vendor_node_waiting_policy_namespaces 2");
    expect(lines).toContain("vendor_node_policy_wait_seconds 1.5");
    expect(lines).toContain("vendor_node_datastore_in_sync 0");
    expect(lines).toContain("vendor_node_datastore_lag_seconds 2");
    expect(lines).toContain("vendor_node_datastore_age_seconds 20");
    expect(lines).toContain('vendor_node_policy_packets_total{policy="shop/db",direction="ingress",action="deny"} 3');
    expect(lines).toContain('vendor_node_policy_bytes_total{policy="shop/db",direction="ingress",action="deny"} 180');
    // A logged packet is decided by a later rule.
    expect(lines).toContain('vendor_node_policy_logged_packets_total{policy="shop/db",direction="ingress"} 2');
    expect(lines).toContain('vendor_node_policy_logged_bytes_total{policy="shop/db",direction="ingress"} 120');
    expect(lines.filter((line) => line.includes('action="log"'))).toEqual([]);
    expect(lines).toContain('vendor_node_other_dropped_packets_total{reason="the end of tier \\"default\\""} 1');
  });
});
