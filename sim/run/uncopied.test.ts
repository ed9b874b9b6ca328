import { describe, expect, test } from "bun:test";
import type { Action } from "../script/operation.ts";
import { Cluster } from "./cluster.ts";
import { playOperation } from "./play-operation.ts";
import { uncopied } from "./uncopied.ts";

const ASKED: readonly Action[] = [
  { kind: "apply namespace", name: "red", labels: { team: "one" } },
  {
    ...{ kind: "apply policy", namespace: "red", name: "closed" },
    spec: { podSelector: { matchLabels: { app: "db" } }, policyTypes: ["Ingress"] },
  },
  { kind: "create pod", namespace: "red", name: "db", node: "node-1", labels: { app: "db" } },
];
const MINUTE = 60_000;

async function startCluster() {
  const cluster = new Cluster({
    ...{ seed: 1, datastore: "etcd", flavour: "realistic", subnets: 1, policySetupSeconds: 0, calls: "itself" },
    ...{ nodes: ["node-1"], operations: [] },
    pools: [{ name: "pool-1", cidr: "10.10.0.0/25", blockSize: 28, encapsulation: "none" }],
  });
  const play = async (...actions: readonly Action[]) => {
    for (const action of actions) await playOperation(cluster, action);
    await cluster.scheduler.runUntil(cluster.now + MINUTE);
  };
  await cluster.start();
  await play();
  await play(...ASKED);
  return { cluster, servers: cluster.servers, play };
}

describe("what users asked for is copied", () => {
  test("at rest everything is", async () => {
    const { servers } = await startCluster();

    expect(await uncopied(servers)).toEqual([]);
  });

  test("a copy that is missing, and one that nobody asks for", async () => {
    const { cluster, servers, play } = await startCluster();
    for (const controllers of cluster.controllers.values()) controllers.kill();
    await play(
      { kind: "delete policy", namespace: "red", name: "closed" },
      {
        ...{ kind: "apply policy", namespace: "red", name: "open" },
        spec: { podSelector: {}, policyTypes: ["Egress"] },
      },
    );

    expect(await uncopied(servers)).toEqual([
      expect.stringContaining("policy: not created NetworkPolicy red/knp.default.open"),
      expect.stringContaining("policy: not deleted NetworkPolicy red/knp.default.closed"),
      "NetworkPolicy red/knp.default.open is not stored",
      "NetworkPolicy red/knp.default.closed is stored, but nobody asks for it",
    ]);
  });

  test("copies of former labels", async () => {
    const { cluster, servers, play } = await startCluster();
    for (const controllers of cluster.controllers.values()) controllers.kill();
    await play(
      { kind: "apply namespace", name: "red", labels: { team: "two" } },
      {
        ...{ kind: "label pod", namespace: "red", name: "db", labels: { app: "web" } },
      },
    );

    expect(await uncopied(servers)).toEqual([
      expect.stringContaining("namespace: not updated Profile kns.red"),
      expect.stringContaining("workloadEndpoint: not updated the endpoint of pod red/db"),
      "Profile kns.red is stored as it was before",
      "The endpoint of pod red/db has no label app=web",
    ]);
  });
});
