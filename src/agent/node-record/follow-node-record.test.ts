import { expect, test } from "bun:test";
import { means, nodeChange, poolChange, seed } from "../../../test/support/ipam.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { MemoryTable } from "../../datastore/memory/table.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import { NODE, POOL } from "../../model/kinds.ts";
import { followNodeRecord, type RecordUpdate } from "./follow-node-record.ts";
import { OwnOrchestratorNode } from "./own-orchestrator-node.ts";

test("followNodeRecord() tries again with growing pauses, at most 30 s, while a pool has no free address", async () => {
  const store = openMemory(new MemoryTable());
  const changes = [nodeChange("node-1"), poolChange("tiny", "10.0.0.0/32", { vxlanMode: "Always", blockSize: 32 })];
  await seed(store, ...changes);
  const allocator = openAllocator(store, means());
  await allocator.assign({
    ...{ handle: "other", node: "node-1", attributes: {}, intendedUse: "Workload" },
    addressRequests: [{ kind: "automatic", family: 4 }],
  });
  const [node, pool] = changes.map((change) => ({ key: change.key, value: change.kind === "put" ? change.value : "" }));
  if (node === undefined || pool === undefined) throw new Error("nothing was made");
  const update: RecordUpdate = {
    changes: {
      nodes: [{ kind: "put", key: node.key, value: NODE.codec.read(node.value, node.key), previous: undefined }],
      pools: [{ kind: "put", key: pool.key, value: POOL.codec.read(pool.value, pool.key), previous: undefined }],
      configurations: [],
    },
  };

  const stop = new AbortController();
  const pauses: number[] = [];
  await followNodeRecord(once(update), {
    ...{ node: "node-1", store, allocator, datastore: "etcd", machineIdentity: () => "this machine" },
    ...{ hostAddresses: () => [], sourceTowards: async () => undefined, uplinkMtu: () => 1500, writeMtu: () => false },
    orchestratorNode: new OwnOrchestratorNode({ name: "node-1", families: [], report: () => {} }),
    ...{ report: () => {}, log: () => {}, forgetProblems: () => {}, signal: stop.signal },
    events: (signal) => silentUntil(signal),
    wait: async (milliseconds) => {
      pauses.push(milliseconds);
      if (pauses.length === 12) stop.abort();
    },
  });

  const refreshes = 15 * 60_000;
  expect(pauses.slice(-9)).not.toContain(refreshes);
  expect(pauses).toContain(8_000);
  expect(pauses.at(-3)).toBe(30_000);
});

async function* once(update: RecordUpdate) {
  yield update;
}

async function* silentUntil(signal: AbortSignal): AsyncGenerator<never> {
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
}
