/**
 * The rolling update while the datastore is locked, with the real controller of DaemonSets, which replaces one pod at a time
 * and waits for a node that does not come back. Kubelets are imitated.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { openMemory } from "../../src/datastore/memory/memory.ts";
import { identity } from "../../src/identity.ts";
import { remainingNodesStep } from "../../src/upgrade/steps/remaining-nodes/step.ts";
import { rolloutStep } from "../../src/upgrade/steps/rollout/step.ts";
import { VERSION } from "../../src/version.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { testNeeding } from "../support/needs.ts";
import type { AnyObject } from "../support/older-cluster/former-object.ts";
import { type OlderCluster, startOlderCluster } from "../support/older-cluster/older-cluster.ts";
import { pollUntil } from "../support/poll.ts";
import { OPERATOR_FACTS } from "../support/setting-steps.ts";
import { stepRun } from "./step-run.ts";

setDefaultTimeout(90_000);

const NODES = Array.from({ length: 12 }, (_, index) => `node-${String(index + 1).padStart(2, "0")}`);
const DOWN = "node-05";
const SETS = "/apis/apps/v1/namespaces/kube-system/daemonsets";
const PODS = "/api/v1/namespaces/kube-system/pods";
const LABELS = { app: identity.nodeAgent };
const problem = apiServerProblem();
const testCluster = testNeeding(problem);

const imageOf = (version: string) => `registry.example/node:${version}`;

let cluster: OlderCluster;
beforeAll(async () => {
  if (problem === undefined) cluster = await startOlderCluster({ nodes: NODES, definitions: "none" });
});
afterAll(() => cluster?.stop());

const agents = async (): Promise<readonly AnyObject[]> => cluster.objects.list(PODS);
const isReady = (pod: AnyObject) =>
  pod.metadata.deletionTimestamp === undefined && pod.status.containerStatuses?.[0]?.ready === true;
const isNew = ({ spec }: AnyObject) => spec.containers[0].image === imageOf(VERSION);

describe("the rolling update of twelve nodes under the lock", () => {
  const run = () =>
    stepRun({
      objects: cluster.objects,
      facts: { ...OPERATOR_FACTS, storage: "former", nodes: NODES, target: VERSION },
      options: { maxUnavailable: "25%", nodeSeconds: 3, stallSeconds: 20 },
      more: { openDatastore: async () => openMemory() },
    });

  testCluster("goes on without a node that does not come back, and never has more nodes down than it may", async () => {
    const container = { name: identity.nodeAgent, image: imageOf("v3.26.1") };
    const template = { metadata: { labels: LABELS }, spec: { hostNetwork: true, containers: [container] } };
    await cluster.objects.create(SETS, {
      ...{ apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name: identity.nodeAgent, namespace: "kube-system" } },
      spec: { selector: { matchLabels: LABELS }, template },
    });
    await pollUntil(
      async () => (await agents()).filter(isReady).length === NODES.length,
      "agents of the release before",
    );
    const { site, plan, carryOut, lines } = run();
    expect((await plan(rolloutStep))?.changes[0]?.what).toContain("12 nodes, the first one alone, then 3 at once");

    cluster.kubelets.behave((pod) => pod.spec.nodeName === DOWN, { kind: "hold" });
    const spec = { containers: [{ ...container, image: imageOf(VERSION) }] };
    await cluster.objects.patch(`${SETS}/${identity.nodeAgent}`, { spec: { template: { spec } } });
    const downs: number[] = [];
    const ended = new AbortController();
    const watched = (async () => {
      while (!ended.signal.aborted) {
        downs.push(NODES.length - (await agents()).filter(isReady).length);
        await Bun.sleep(20);
      }
    })();
    await carryOut(rolloutStep);
    ended.abort();
    await watched;

    expect((await site.notes.read())["left"]).toEqual({ [DOWN]: expect.stringContaining("does not end") });
    expect((await agents()).filter((pod) => isNew(pod) && isReady(pod))).toHaveLength(NODES.length - 1);
    // The orchestrator's own, the three of the tool, and the one that is left.
    expect(Math.max(...downs)).toBeLessThanOrEqual(5);
    expect(lines.filter((line) => line.endsWith("is deleted, so that its next one starts")).length).toBeGreaterThan(5);
  });

  testCluster("is completed when the node is back", async () => {
    const { site, plan, carryOut } = run();
    const planned = await plan(remainingNodesStep);
    expect(planned && (await remainingNodesStep.remaining(site, planned))).toEqual([expect.stringContaining(DOWN)]);
    cluster.kubelets.behave((pod) => pod.spec.nodeName === DOWN, { kind: "run" });
    await carryOut(remainingNodesStep);

    expect((await agents()).filter((pod) => isNew(pod) && isReady(pod))).toHaveLength(NODES.length);
  });
});
