/**
 * A whole upgrade by the built admin tool on a real API server with the real garbage collector, from a cluster laid out as an
 * earlier release had it, with running pods: rolled back, killed after every step, completed, verified, applied again.
 */
import { describe, expect } from "bun:test";
import { dirname } from "node:path";
import { identity } from "../../src/identity.ts";
import { allPodsStep } from "../../src/upgrade/steps/all-pods/step.ts";
import { partIfBuilt } from "../parts/build.ts";
import { helmProblem } from "../support/helm.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { testNeeding } from "../support/needs.ts";
import { type ClusterState, differencesOf, readClusterState } from "../support/older-cluster/cluster-state.ts";
import type { AnyObject } from "../support/older-cluster/former-object.ts";
import type { OlderCluster } from "../support/older-cluster/older-cluster.ts";
import { FORMER_PODS } from "../support/older-cluster/resources.ts";
import { runOperatorOfRelease } from "../support/older-cluster/running-operator.ts";
import { saveCluster } from "../support/older-cluster/saved-cluster.ts";
import { openUpgradeTool, type UpgradeTool } from "../support/older-cluster/upgrade-tool.ts";
import { proofSize } from "../support/proof-size.ts";
import { addAddress } from "./add-address.ts";
import type { Layout } from "./whole-layouts.ts";

const NEW_PODS = proofSize({ everyDay: 24, soak: 80 });
const COMPARES_WHOLE_RUNS = proofSize({ everyDay: false, soak: true });

/** A rollback says that it leaves definitions: what is stored is never converted back. */
const STAYING = new RegExp(`^\\+ /apis/apiextensions.k8s.io/v1/customresourcedefinitions/\\w+.${identity.apiGroup}$`);
/** Nothing assigns addresses in these clusters while they are locked. */
const PLAN = ["plan", "--lock-time=1s"];
/** The last one before the datastore is unlocked: until then the former storage is valid. */
const LAST_TO_UNDO = "rollout";

/** `problem`: why it is not run here. */
export function describeWholeUpgrade(layout: Layout, problem?: string): void {
  const helm = layout.method === "chart" ? helmProblem("helm3") : undefined;
  describe(`an upgrade of ${layout.title}`, () => {
    testNeeding(problem ?? apiServerProblem(layout.release), helm)(
      "is undone, ends the same whether killed or not, keeps addresses, and writes nothing when applied again",
      async () => {
        await using cluster = await layout.start();
        await using _ = layout.method === "manifest" ? undefined : runOperatorOfRelease(cluster);
        using tool = openUpgradeTool(cluster, helmPath());
        const pods = await runningPods(cluster);
        const before = await readClusterState(cluster.objects);
        const saved = COMPARES_WHOLE_RUNS ? await saveCluster(cluster) : undefined;

        await tool.succeed(...PLAN);
        await tool.applyUntil(LAST_TO_UNDO);
        const undisturbed = await readClusterState(cluster.objects);
        expect(await runningPods(cluster)).toEqual(pods);
        await tool.succeed("rollback", "--yes");
        const undone = differencesOf(before, await readClusterState(cluster.objects), 1_000);
        expect(undone.filter((line) => !STAYING.test(line) && isUndoneBy(layout, line))).toEqual([]);
        expect(await runningPods(cluster)).toEqual(pods);
        // There is no operator of the earlier release here that would render its components again.
        if (layout.method !== "manifest") await saved?.restore();

        const killed = await upgradeKilledAfterEachStep(cluster, tool, layout);
        if (layout.method === "manifest") expect(differencesOf(undisturbed, killed.atLastToUndo)).toEqual([]);
        expect(await runningPods(cluster)).toEqual(pods);
        expect(await writesOf(cluster, () => tool.succeed("apply"))).toEqual([]);
        expect(await assignedTwice(cluster, layout)).toEqual([]);

        if (saved === undefined) return;
        await saved.restore();
        await tool.succeed(...PLAN);
        await tool.succeed("apply");
        expect(differencesOf(await readClusterState(cluster.objects), killed.atEnd)).toEqual([]);
      },
    );
  });
}

/** What an operator has rendered, only the operator of the earlier release can put back. */
function isUndoneBy({ method }: Layout, line: string): boolean {
  return (
    method === "manifest" || line.includes(`/namespaces/${identity.operator}/`) || line.includes("/installations/")
  );
}

interface KilledRun {
  readonly atLastToUndo: ClusterState;
  readonly atEnd: ClusterState;
}

async function upgradeKilledAfterEachStep(
  { objects }: OlderCluster,
  tool: UpgradeTool,
  { method }: Layout,
): Promise<KilledRun> {
  await tool.succeed(...PLAN);
  const killedAfter: string[] = [];
  let atLastToUndo: ClusterState = new Map();
  for (let step = await tool.applyUntil(); step !== undefined; step = await tool.applyUntil()) {
    killedAfter.push(step);
    if (step === LAST_TO_UNDO) atLastToUndo = await readClusterState(objects);
  }
  const { steps } = JSON.parse(await tool.succeed("status", "-o", "json"));
  const names: readonly string[] = steps.map(({ name }: AnyObject) => name);
  if (method === "manifest") expect(names).toContain(allPodsStep.name);
  expect(killedAfter.filter(isKilledInTime)).toEqual(names.filter(isKilledInTime));
  await tool.succeed("verify");
  return { atLastToUndo, atEnd: await readClusterState(objects) };
}

/** It only reads, and may be done before the tool of the step before it is dead. */
function isKilledInTime(step: string): boolean {
  return step !== allPodsStep.name;
}

function helmPath(): Readonly<Record<string, string>> {
  const built = partIfBuilt("helm3");
  return "missing" in built ? {} : { PATH: `${dirname(built.path)}:${process.env["PATH"]}` };
}

/** UIDs and addresses of the users' pods: the same pod is never replaced. */
async function runningPods({ objects }: OlderCluster): Promise<readonly (readonly string[])[]> {
  const pods: readonly AnyObject[] = await objects.list("/api/v1/pods");
  const ours = pods.filter(({ metadata }) => FORMER_PODS.some(({ name }) => name === metadata.name));
  return ours.map(({ metadata, status }) => [metadata.name, metadata.uid, status.phase, status.podIP]);
}

/** Requests of the tool that change something, without those for its Lease and those that only try. */
async function writesOf(cluster: OlderCluster, work: () => Promise<unknown>): Promise<readonly string[]> {
  const audit = cluster.startAudit();
  await work();
  const isWrite = /^(create|update|patch|delete)/;
  return audit
    .requests()
    .filter(({ userAgent }) => userAgent.startsWith(identity.adminTool))
    .filter(({ verb, resource, uri }) => isWrite.test(verb) && resource !== "leases" && !uri.includes("dryRun=All"))
    .map(({ verb, uri }) => `${verb} ${uri}`);
}

/** Assigns addresses to new pods, in the soak more than a block has; returns those that another pod has. */
async function assignedTwice(cluster: OlderCluster, layout: Layout): Promise<readonly string[]> {
  const used = new Set(FORMER_PODS.map(({ address }) => address));
  const datastore =
    layout.datastore === "etcd"
      ? { datastore_type: "etcdv3", etcd_endpoints: cluster.etcdEndpoint }
      : { datastore_type: "kubernetes", kubernetes: { kubeconfig: cluster.adminKubeconfig } };
  const attach = (index: number) =>
    addAddress({ container: `new-${index}`, node: index % 4 === 0 ? "two" : "one", datastore });
  const assigned: string[] = [];
  for (let index = 0; index < NEW_PODS; index += 8) {
    assigned.push(...(await Promise.all(Array.from({ length: 8 }, (_, offset) => attach(index + offset)))).flat());
  }
  expect(new Set(assigned).size).toBe(NEW_PODS);
  return assigned.filter((address) => used.has(address));
}
