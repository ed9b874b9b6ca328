import { describe, expect, test } from "bun:test";
import { networkKinds } from "../../src/agent/network/followed-network.ts";
import { MemoryTable } from "../../src/datastore/memory/table.ts";
import { ROUTED_BLOCK_KINDS } from "../../src/routing/inputs.ts";
import { applicationOf, nodesOfZone, peerOf, podAddress, recordsOfNode, sharedRecords } from "./cluster-records.ts";
import { CountedStore } from "./counted-store.ts";
import { ModelRuntime, startModelAgent } from "./many-agents.ts";

const SIZE = { nodes: 4, podsPerNode: 50, policies: 200 };

describe("records of a cluster", () => {
  test("can all be read, and each has its own key", () => {
    const records = [...sharedRecords(SIZE), ...[0, 1, 2, 3].flatMap((node) => recordsOfNode(node, SIZE))];
    const kinds = Object.values({ ...networkKinds("node-0"), ...ROUTED_BLOCK_KINDS });
    const read = records.map(({ key, value }) => {
      const kind = kinds.find(({ prefix }) => key.startsWith(prefix));
      return kind?.decode({ key, value, revision: "1" });
    });

    expect(new Set(records.map(({ key }) => key)).size).toBe(records.length);
    // The agent does not follow the handles of the tunnels' addresses.
    expect(read.filter((each) => each === undefined)).toHaveLength(SIZE.nodes);
  });

  test("give each pod its own address, and each node pods of different applications", () => {
    const pods = [0, 1, 2, 3].flatMap((node) => Array.from({ length: 50 }, (_, pod) => [node, pod] as const));

    expect(new Set(pods.map(([node, pod]) => podAddress(node, pod))).size).toBe(200);
    expect(new Set(pods.map(([node, pod]) => applicationOf(node, pod, SIZE))).size).toBe(200);
    expect(peerOf(150, SIZE)).toBe(50);
  });

  test("spread the nodes over zones", () => {
    expect([0, 1, 2].map((zone) => nodesOfZone({ nodes: 7 }, zone))).toEqual([
      [0, 3, 6],
      [1, 4],
      [2, 5],
    ]);
  });
});

describe("startModelAgent()", () => {
  test("plans routes and compiles policy from what runtimes of other nodes write", async () => {
    const table = new MemoryTable();
    const store = new CountedStore(table);
    const records = [
      ...sharedRecords({ policies: 100 }),
      ...[0, 1].flatMap((node) => recordsOfNode(node, { ...SIZE, podsPerNode: 1 })),
    ];
    for (let start = 0; start < records.length; start += 100) {
      await store.commit(records.slice(start, start + 100).map((record) => ({ kind: "put", ...record })));
    }
    const agent = startModelAgent(table, 0);
    while (!agent.isCurrent()) await Bun.sleep(1);
    const before = agent.counts;
    // The application of this pod may connect to the pod of node 0.
    const added = await new ModelRuntime(table, 1, { nodes: 2, podsPerNode: 100, policies: 100 }, () => 0.5).add(0);
    while (!agent.isCurrent()) await Bun.sleep(1);

    expect(added).toMatchObject({ commits: 1, records: 4 });
    expect(agent.counts.events - before.events).toBe(2);
    expect(agent.routes).toBeGreaterThan(0);
    await agent.stop();
  });
});
