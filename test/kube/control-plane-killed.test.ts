/** A storm of pods while the API server and etcd are killed and started again: no address is used twice, and none is lost. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import type { ApiServer } from "../support/kube-apiserver.ts";
import { poolsOf } from "../support/kube-families.ts";
import { addressesOf } from "../support/kube-pods.ts";
import { type ProductClusterPlan, productClusterProblem, titleOf } from "../support/kube-product.ts";
import { testNeeding } from "../support/needs.ts";
import { NAMESPACE } from "../support/pods-in-namespace.ts";
import { pollUntil } from "../support/poll.ts";
import { openProductPods, type ProductPods } from "../support/product-pods.ts";
import { proofSize } from "../support/proof-size.ts";

const PODS = proofSize({ everyDay: 12, soak: 50 });
const LIMIT_MILLISECONDS = proofSize({ everyDay: 300_000, soak: 580_000 });
const WORKLOAD = "storm";

const PLANS = proofSize<readonly ProductClusterPlan[]>({
  everyDay: [{ datastore: "kubernetes", families: "dual stack", calls: "by the node agent" }],
  soak: (["etcd", "kubernetes"] as const).flatMap((datastore) =>
    (["by the node agent", "by themselves"] as const).map((calls) => ({ datastore, families: "dual stack", calls })),
  ),
});

const problem = productClusterProblem();
const testStorm = testNeeding(problem);

describe.each(PLANS.map((plan) => ({ title: titleOf(plan), plan })))("a storm of pods ($title)", ({ plan }) => {
  let opened: ProductPods;
  beforeAll(async () => {
    if (problem === undefined) opened = await openProductPods(plan);
  });
  afterAll(() => opened?.[Symbol.asyncDispose]());

  testStorm(
    `${PODS} pods start and end while API server and etcd are killed and started again`,
    async () => {
      const { cluster, pods } = opened;
      await pods.createWorkload("Deployment", { name: WORKLOAD, replicas: PODS });
      await killAt([PODS * 0.2, PODS * 0.5, PODS * 0.8], (links, limit) => links >= limit);
      const areReady = async () => {
        const all = await pods.list(WORKLOAD);
        const isReady = all.map(({ status }) => status.containerStatuses?.every(({ ready }) => ready) ?? false);
        return all.length === PODS && isReady.every(Boolean);
      };
      await pollUntil(areReady, "all pods to be Ready", LIMIT_MILLISECONDS);

      const all = await pods.list(WORKLOAD);
      expect(all.map(({ status }) => status.phase)).toEqual(Array(PODS).fill("Running"));
      expect(new Set(all.flatMap(addressesOf)).size).toBe(PODS * poolsOf(plan.families, "usual").length);
      // The sandboxes of failed attempts are removed a little later.
      await opened.untilOnlyRecorded(all.map(({ metadata }) => metadata.name));
      // The last DEL of such a sandbox may still be in progress.
      const isConsistent = async () => (await cluster.admin("ipam", "check", "--no-grace")).includes(": no problems");
      await pollUntil(isConsistent, "IPAM to be consistent", LIMIT_MILLISECONDS);

      await cluster.server.kubectl(["scale", "deployment", WORKLOAD, "--replicas=0", `--namespace=${NAMESPACE}`]);
      await killAt([PODS * 0.8, PODS * 0.5, PODS * 0.2], (links, limit) => links <= limit);
      const areGone = async () => (await pods.list()).length === 0;
      await pollUntil(areGone, "all pods to be gone", LIMIT_MILLISECONDS);
      await opened.expectNothingLeft();
    },
    LIMIT_MILLISECONDS,
  );

  /** Kills the API server, etcd and both, each when the number of the pods' links has reached its limit. */
  const killAt = async (limits: readonly number[], isReached: (links: number, limit: number) => boolean) => {
    const { server, node } = opened.cluster;
    for (const [index, kill] of [killApiServer, killEtcd, killBoth].entries()) {
      const isTime = async () => {
        const links = (await node.host.must(["ip", "-o", "link"])).split("\n").filter((line) => line.includes("@if"));
        // One of them is the host's own.
        return isReached(links.length - 1, limits[index] ?? 0);
      };
      await pollUntil(isTime, `${limits[index]} links`, LIMIT_MILLISECONDS);
      await kill(server);
    }
  };
});

async function killApiServer({ apiServer }: ApiServer): Promise<void> {
  await apiServer.restart();
}

async function killEtcd({ etcd }: ApiServer): Promise<void> {
  await etcd.restart();
}

async function killBoth({ etcd, apiServer }: ApiServer): Promise<void> {
  await Promise.all([etcd.kill(), apiServer.kill()]);
  await etcd.restart();
  await apiServer.restart();
}
