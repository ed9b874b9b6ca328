import { describe, expect, test } from "bun:test";
import { type ControllersReport, livenessOf, metricsText, readinessOf } from "./report.ts";

const REPORT: ControllersReport = {
  controllers: [
    {
      name: "policy",
      queueDepth: 3,
      failingKeys: 1,
      writes: 7,
      errors: 2,
      heldRemovals: 30,
      isListed: true,
      isSynced: false,
    },
  ],
  collector: {
    candidates: 1,
    overdue: new Map([["n2", 5]]),
    releasedAddresses: 4,
    releasedBlocks: 2,
    freedKept: 3,
    errors: 0,
    heldRemovals: 25,
  },
  usage: {
    pools: [{ pool: "blue", size: 256, inUse: 12, kept: 4, waiting: 1, resting: 5 }],
    nodes: [{ node: "n1", inUse: 12, borrowed: 1, blocks: 2 }],
  },
  isLeading: true,
  clusterMismatch: undefined,
  isDatastoreLocked: true,
  unconfirmedCluster: undefined,
  electedAt: 1_000,
  now: 2_000,
};

describe("the report of the controllers", () => {
  test("is live while the lease is asked for", () => {
    expect(livenessOf(REPORT).status).toBe(200);
    expect(livenessOf({ ...REPORT, now: 62_000 })).toEqual({
      status: 503,
      text: "the lease has not been asked for since 61 s",
    });
  });

  test("is ready once everything is known, also as a standby", () => {
    expect(readinessOf({ ...REPORT, isLeading: false }).status).toBe(200);
    expect(readinessOf({ ...REPORT, controllers: undefined }).status).toBe(503);
    expect(readinessOf({ ...REPORT, clusterMismatch: "another cluster" })).toEqual({
      status: 503,
      text: "another cluster",
    });
    expect(readinessOf({ ...REPORT, unconfirmedCluster: "namespaces is forbidden" })).toEqual({
      status: 503,
      text: "namespaces is forbidden",
    });
    const [policy] = REPORT.controllers ?? [];
    const waiting = { ...REPORT, controllers: policy === undefined ? [] : [{ ...policy, isListed: false }] };
    expect(readinessOf(waiting)).toEqual({ status: 503, text: "not everything is known yet to: policy" });
  });

  test.each([
    "vendor_controllers_leader 1",
    "vendor_controllers_cluster_mismatch 0",
    "vendor_controllers_datastore_locked 1",
    'vendor_controllers_held_removals{controller="policy"} 30',
    'vendor_controllers_held_removals{controller="leaks"} 25',
    'vendor_controllers_queue_depth{controller="policy"} 3',
    'vendor_controllers_failing_keys{controller="policy"} 1',
    'vendor_controllers_writes_total{controller="policy"} 7',
    'vendor_controllers_errors_total{controller="policy"} 2',
    "vendor_controllers_leak_candidates 1",
    'vendor_controllers_node_addresses_overdue{node="n2"} 5',
    "vendor_controllers_leaked_addresses_released_total 4",
    "vendor_controllers_block_claims_released_total 2",
    "vendor_controllers_kept_addresses_freed_total 3",
    'vendor_controllers_pool_addresses_kept{pool="blue",state="in use"} 3',
    'vendor_controllers_pool_addresses_kept{pool="blue",state="waiting"} 1',
    'vendor_controllers_pool_addresses_resting{pool="blue"} 5',
    'vendor_controllers_pool_addresses{pool="blue"} 256',
    'vendor_controllers_pool_addresses_in_use{pool="blue"} 12',
    'vendor_controllers_node_addresses_in_use{node="n1"} 12',
    'vendor_controllers_node_addresses_borrowed{node="n1"} 1',
    'vendor_controllers_node_blocks{node="n1"} 2',
  ])("has the metric %s", (line) => {
    expect(metricsText(REPORT).split("\n")).toContain(line);
  });
});
