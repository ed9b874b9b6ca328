import { describe, expect, test } from "bun:test";
import { objectTable } from "../../../../test/support/object-table.ts";
import { upgradeSite } from "../../../../test/support/upgrade-site.ts";
import { openMemory } from "../../../datastore/memory/memory.ts";
import { resourceKey } from "../../../model/keys.ts";
import type { StepPlan } from "../../engine/step.ts";
import { clusterVersionStep } from "./step.ts";

const KEY = resourceKey("clusterinformations", { name: "default" });

interface TestNode {
  readonly recorded?: string;
  readonly image?: string;
}

async function openCluster(nodes: Readonly<Record<string, TestNode>>) {
  const store = openMemory();
  const write = (key: string, kind: string, name: string, more: object) => {
    const value = JSON.stringify({
      apiVersion: "vendor.org/v3",
      kind,
      ...more,
      metadata: { name, ...annotated(more) },
    });
    return store.commit([{ kind: "create", key, value }]);
  };
  const annotated = (more: object) => ("annotations" in more ? { annotations: more.annotations } : {});
  await write(KEY, "ClusterInformation", "default", { spec: { vendorVersion: "v3.26.1", clusterGUID: "g" } });
  const record = async (name: string, version: string | undefined) => {
    const key = resourceKey("nodes", { name });
    const entry = (await store.read([{ kind: "key", key }])).answers[0]?.[0];
    if (entry !== undefined) await store.commit([{ kind: "delete", key, revision: entry.revision }]);
    const annotations = version === undefined ? {} : { "vendor.org/agent-version": version };
    await write(key, "Node", name, { spec: {}, annotations });
  };
  for (const [name, { recorded }] of Object.entries(nodes)) await record(name, recorded);
  const pods = Object.entries(nodes).flatMap(([node, { image }]) =>
    image === undefined
      ? []
      : [
          {
            apiVersion: "v1",
            kind: "Pod",
            metadata: { name: `vendor-node-${node}`, namespace: "kube-system" },
            spec: { nodeName: node, containers: [{ name: "vendor-node", image }] },
            status: { phase: "Running" },
          },
        ],
  );
  const version = async () => {
    const entry = (await store.read([{ kind: "key", key: KEY }])).answers[0]?.[0];
    return JSON.parse(entry?.value ?? "{}").spec;
  };
  return { store, record, version, objects: objectTable(pods).objects };
}

const NEW = "registry.vendor.org/vendor:v3.29.0";

async function planned(site: Parameters<typeof clusterVersionStep.plan>[0]): Promise<StepPlan> {
  const plan = await clusterVersionStep.plan(site);
  if (plan === undefined) throw new Error("the step is needed");
  return plan;
}

describe("cluster-version", () => {
  test("raises the version when every agent is new, keeps other fields, and goes back", async () => {
    const { store, objects, version } = await openCluster({
      recorded: { recorded: "v3.29.0", image: NEW },
      "by its pod": { image: NEW },
      "without an agent": {},
    });
    const site = upgradeSite({ objects, store });
    const plan = await planned(site);
    expect(plan.changes[0]?.diff).toBe("-  vendorVersion: v3.26.1\n+  vendorVersion: v3.29.0");
    expect(await clusterVersionStep.remaining(site, plan)).toEqual([
      "ClusterInformation default has v3.26.1, not v3.29.0",
    ]);

    await clusterVersionStep.act(site, plan);
    expect(await version()).toEqual({ vendorVersion: "v3.29.0", clusterGUID: "g" });
    expect(await clusterVersionStep.remaining(site, plan)).toEqual([]);
    expect(await clusterVersionStep.verify?.(site, plan)).toEqual([]);
    expect(await clusterVersionStep.plan(site)).toBeUndefined();

    await clusterVersionStep.rollback?.(site, plan);
    expect((await version()).vendorVersion).toBe("v3.26.1");
  });

  test("waits for an agent that is behind", async () => {
    const { store, objects, record, version } = await openCluster({ a: { recorded: "v3.26.1", image: NEW } });
    const site = upgradeSite({ objects, store, onWait: () => record("a", "v3.29.0") });
    await clusterVersionStep.act(site, await planned(site));
    expect((await version()).vendorVersion).toBe("v3.29.0");
  });

  test("stops with the names of the nodes whose agents stay behind", async () => {
    const { store, objects, version } = await openCluster({
      a: { recorded: "v3.26.1", image: NEW },
      b: { image: "vendor/node:v3.26.1" },
      c: { recorded: "v3.29.0", image: NEW },
    });
    const site = upgradeSite({ objects, store });
    const ended = clusterVersionStep.act(site, await planned(site));
    await expect(ended).rejects.toMatchObject({
      kind: "try-again-later",
      message: expect.stringContaining("Node a has v3.26.1, Node b has not recorded a release"),
    });
    expect((await version()).vendorVersion).toBe("v3.26.1");
  });
});
