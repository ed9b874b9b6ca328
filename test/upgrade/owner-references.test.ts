/**
 * Rule 3 with the real garbage collector: resources that were served by the aggregated API get new UIDs when their storage
 * moves. What they own is deleted, unless its references are removed before and added again after.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { dirname } from "node:path";
import { API_VERSION, apiVersionOf, identity } from "../../src/identity.ts";
import { requireOk } from "../../src/kube/require-ok.ts";
import type { Facts } from "../../src/upgrade/engine/facts.ts";
import type { StepSite } from "../../src/upgrade/engine/step.ts";
import { FORMER_API, FORMER_API_SERVER, FORMER_UID } from "../../src/upgrade/former-names.ts";
import { ownerReferencesStep } from "../../src/upgrade/steps/owner-references/step.ts";
import { restoreOwnerReferencesStep } from "../../src/upgrade/steps/restore-owner-references/step.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { testNeeding } from "../support/needs.ts";
import type { AnyObject } from "../support/older-cluster/former-object.ts";
import { type OlderCluster, startOlderCluster } from "../support/older-cluster/older-cluster.ts";
import { pollUntil } from "../support/poll.ts";
import { rejectionOf } from "../support/thrown-by.ts";

const problem = apiServerProblem();
const testCluster = testNeeding(problem);
const IN_NAMESPACE = `/apis/${API_VERSION}/namespaces/default`;
const POLICY = `${IN_NAMESPACE}/networkpolicies/web`;
const SET = `${IN_NAMESPACE}/networksets/addresses`;
const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
const facts = { storage: "former", hasAggregatedApi: true } as Facts;

describe("an older cluster", () => {
  let cluster: OlderCluster;
  beforeAll(async () => {
    if (problem !== undefined) return;
    const kinds = ["NetworkPolicy", "NetworkSet"];
    cluster = await startOlderCluster({ nodes: ["node-one", "node-two"], aggregatedApi: "identity", kinds });
    await createOwnerAndOwned(cluster);
  }, 60_000);
  afterAll(() => cluster?.stop());

  testCluster("stores what the aggregated API is given, with the metadata hidden", async () => {
    const former = apiVersionOf(FORMER_API);
    const stored = await read(cluster, `/apis/${former}/namespaces/default/networkpolicies/default.web`);
    const served = await read(cluster, POLICY);
    expect(JSON.parse(stored.metadata.annotations[`${identity.labelPrefix}metadata`])).toMatchObject({
      labels: { app: "web" },
    });
    expect(served.metadata).toMatchObject({ name: "web", labels: { app: "web" }, uid: stored.metadata.uid });

    cluster.aggregatedApi.uidMode = "bit-reversed";
    const changed = await read(cluster, POLICY);
    cluster.aggregatedApi.uidMode = "identity";
    expect(changed.metadata.uid).not.toBe(stored.metadata.uid);
  });

  testCluster("runs the pods of a DaemonSet on its nodes, and replaces them when it changes", async () => {
    await cluster.apply(daemonSet("agent:1"));
    const status = async () => (await read(cluster, "/apis/apps/v1/namespaces/kube-system/daemonsets/agent")).status;
    await pollUntil(async () => (await status()).numberAvailable === 2, "two pods");

    await cluster.apply(daemonSet("agent:2"));

    await pollUntil(async () => {
      const { updatedNumberScheduled, numberAvailable, observedGeneration } = await status();
      return updatedNumberScheduled === 2 && numberAvailable === 2 && observedGeneration === 2;
    }, "two new pods");
  });

  testCluster("cannot be searched while an aggregated API is broken, unless that is left out", async () => {
    await cluster.apply(brokenApiService());

    const site = siteOf(cluster);
    const plan = await ownerReferencesStep.plan(site);
    expect(plan?.obstacles[0]?.message).toContain('APIService "v1.broken.example" is not available');
    expect(plan?.obstacles[0]?.remedy).toContain("--ignore-group=broken.example");
    const failure = await rejectionOf(() => ownerReferencesStep.act(site, plan as never));
    expect(String(failure)).toContain("broken.example");

    const ignoring = await ownerReferencesStep.plan(siteOf(cluster, { ignoredGroups: ["broken.example"] }));
    expect(ignoring?.obstacles).toEqual([]);
    expect(ignoring?.changes.map(({ what }) => what.split(":")[0])).toEqual([
      "ConfigMap default/kept",
      "NetworkSet default/addresses",
    ]);
    await cluster.objects.remove("/apis/apiregistration.k8s.io/v1/apiservices/v1.broken.example");
  });

  testCluster("has a controller that sets references again: it is named", async () => {
    const uid = await uidOf(cluster, POLICY);
    const site = siteOf(cluster, { onWait: () => own(cluster, "kept", uid, "shop-controller") });

    const failure = await rejectionOf(() => ownerReferencesStep.act(site, {} as never));

    expect(String(failure)).toContain('ConfigMap default/kept by "shop-controller"');
  });

  testCluster("keeps what its resources own through the move and back, and deletes what was left out", async () => {
    const site = siteOf(cluster);
    const before = await uidOf(cluster, POLICY);
    await own(cluster, "kept", before, "shop-controller");
    await cluster.objects.patch(SET, { metadata: { ownerReferences: [referenceTo(before)] } });
    await ownerReferencesStep.act(site, {} as never);
    expect(await ownerReferencesStep.remaining(site, {} as never)).toEqual([]);
    expect(await ownersOf(cluster, `${CONFIG_MAPS}/kept`)).toEqual([]);
    // As if the step had not seen it.
    await own(cluster, "lost", before, "test");

    await moveStorage(cluster);
    const after = await uidOf(cluster, POLICY);
    expect(after).not.toBe(before);
    await restoreOwnerReferencesStep.act(site, {} as never);

    // The garbage collector remembers UIDs for long: a new one knows only what there is.
    await cluster.controllerManager.restart();
    await pollUntil(async () => !(await exists(cluster, "lost")), "the end of the object whose owner has another UID");
    expect(await ownersOf(cluster, `${CONFIG_MAPS}/kept`)).toMatchObject([
      { name: "web", uid: after, controller: true },
    ]);
    expect(await ownersOf(cluster, SET)).toMatchObject([{ name: "web", uid: after }]);
    expect(await restoreOwnerReferencesStep.remaining(site, {} as never)).toEqual([]);

    await restoreOwnerReferencesStep.rollback?.(site, {} as never);
    await cluster.aggregatedApi.register();
    // It also remembers UIDs that it has not found.
    await cluster.controllerManager.restart();
    await ownerReferencesStep.rollback?.(site, {} as never);

    expect(await ownersOf(cluster, `${CONFIG_MAPS}/kept`)).toMatchObject([
      { name: "web", uid: before, controller: true },
    ]);
    expect(await ownersOf(cluster, SET)).toMatchObject([{ name: "web", uid: before }]);
    await cluster.objects.remove(POLICY);
    await pollUntil(async () => !(await exists(cluster, "kept")), "the end of what a deleted resource owned");
  });
});

async function createOwnerAndOwned(cluster: OlderCluster): Promise<void> {
  const metadata = { namespace: "default" };
  const policy = { apiVersion: API_VERSION, kind: "NetworkPolicy", spec: { selector: "all()" } };
  const labels = { app: "web" };
  await cluster.objects.create(dirname(POLICY), { ...policy, metadata: { ...metadata, name: "web", labels } });
  const uid = await uidOf(cluster, POLICY);
  const owned = { ...metadata, name: "addresses", ownerReferences: [referenceTo(uid)] };
  const set = { apiVersion: API_VERSION, kind: "NetworkSet", metadata: owned, spec: { nets: ["192.0.2.0/24"] } };
  await cluster.objects.create(dirname(SET), set);
  await own(cluster, "kept", uid, "shop-controller");
}

function referenceTo(uid: string): object {
  return { apiVersion: API_VERSION, kind: "NetworkPolicy", name: "web", uid };
}

/** As a controller does it that creates ConfigMaps for policies. */
async function own(cluster: OlderCluster, name: string, uid: string, fieldManager: string): Promise<void> {
  const metadata = { name, namespace: "default", ownerReferences: [{ ...referenceTo(uid), controller: true }] };
  const request = {
    method: "PATCH",
    path: `${CONFIG_MAPS}/${name}`,
    query: { fieldManager },
    contentType: "application/apply-patch+yaml",
    body: JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata }),
  } as const;
  requireOk(await cluster.client.request(request), request);
}

/** What the step "storage" does, in short. */
async function moveStorage(cluster: OlderCluster): Promise<void> {
  const paths = [POLICY, SET];
  const resources = await Promise.all(paths.map((path) => read(cluster, path)));
  const files = ["networkpolicies", "networksets"].map((name) => `--filename=deploy/crds/${name}.yaml`);
  await cluster.kubectl(["apply", "--server-side", ...files]);
  await cluster.objects.patch(`/apis/apiregistration.k8s.io/v1/apiservices/${FORMER_API_SERVER.apiService}`, {
    spec: { service: null, caBundle: null },
  });
  for (const [index, item] of resources.entries()) {
    const { name, namespace, labels, uid } = item.metadata;
    const metadata = {
      name,
      namespace,
      ...(labels === undefined ? {} : { labels }),
      annotations: { [FORMER_UID]: uid },
    };
    const copy = async () => {
      await cluster.objects.create(dirname(paths[index] ?? ""), { ...item, metadata });
      return true;
    };
    // Definitions are served shortly after they are created.
    await pollUntil(copy, `the copy of ${item.kind} ${name}`);
  }
}

function brokenApiService(): string {
  const spec = {
    group: "broken.example",
    version: "v1",
    groupPriorityMinimum: 100,
    versionPriority: 100,
    service: { namespace: "default", name: "nowhere", port: 443 },
  };
  const metadata = { name: "v1.broken.example" };
  return JSON.stringify({ apiVersion: "apiregistration.k8s.io/v1", kind: "APIService", metadata, spec });
}

function daemonSet(image: string): string {
  return `
apiVersion: apps/v1
kind: DaemonSet
metadata: { name: agent, namespace: kube-system }
spec:
  selector: { matchLabels: { app: agent } }
  template:
    metadata: { labels: { app: agent } }
    spec: { hostNetwork: true, containers: [{ name: agent, image: "${image}" }] }
`;
}

async function read(cluster: OlderCluster, path: string): Promise<AnyObject> {
  return cluster.objects.read(path);
}

async function uidOf(cluster: OlderCluster, path: string): Promise<string> {
  return (await read(cluster, path)).metadata.uid;
}

async function ownersOf(cluster: OlderCluster, path: string): Promise<AnyObject> {
  return (await read(cluster, path)).metadata.ownerReferences ?? [];
}

async function exists(cluster: OlderCluster, configMap: string): Promise<boolean> {
  return (await cluster.objects.read(`${CONFIG_MAPS}/${configMap}`)) !== undefined;
}

function siteOf(
  cluster: OlderCluster,
  more: { readonly ignoredGroups?: readonly string[]; readonly onWait?: () => Promise<void> } = {},
): StepSite {
  const backups = new Map<string, string>();
  let notes = {};
  return {
    objects: cluster.objects,
    facts,
    options: { ignoredGroups: more.ignoredGroups ?? [] },
    backups: {
      save: async (name: string, text: string) => void (backups.has(name) || backups.set(name, text)),
      read: async (name: string) => backups.get(name),
    },
    notes: {
      read: async () => notes,
      write: async (next: object) => {
        notes = next;
      },
    },
    progress: () => {},
    wait: async () => more.onWait?.(),
  } as unknown as StepSite;
}
