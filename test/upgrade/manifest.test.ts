/**
 * Installations from manifests of earlier releases are upgraded on a real API server with the real controllers of DaemonSets and
 * Deployments (rules 7 and 8), and rolled back. Kubelets are imitated.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { openMemory } from "../../src/datastore/memory/memory.ts";
import { MemoryTable } from "../../src/datastore/memory/table.ts";
import { PluginError } from "../../src/errors.ts";
import { identity } from "../../src/identity.ts";
import type { Facts } from "../../src/upgrade/engine/facts.ts";
import { restoreObject } from "../../src/upgrade/engine/restore-objects.ts";
import type { Step, StepPlan } from "../../src/upgrade/engine/step.ts";
import { writeObject } from "../../src/upgrade/manifest-install/write-objects.ts";
import type { StockVariant } from "../../src/upgrade/published/stock-manifest.ts";
import { allPodsStep } from "../../src/upgrade/steps/all-pods/step.ts";
import { formerObjectsStep } from "../../src/upgrade/steps/former-objects/step.ts";
import { manifestStep } from "../../src/upgrade/steps/manifest/step.ts";
import { rolloutStep } from "../../src/upgrade/steps/rollout/step.ts";
import { VERSION } from "../../src/version.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { testNeeding } from "../support/needs.ts";
import type { AnyObject } from "../support/older-cluster/former-object.ts";
import { layOutManifest } from "../support/older-cluster/manifest.ts";
import { type OlderCluster, startOlderCluster } from "../support/older-cluster/older-cluster.ts";
import { pollUntil } from "../support/poll.ts";
import { rejectionOf } from "../support/thrown-by.ts";
import { type StepRun, stepRun } from "./step-run.ts";

setDefaultTimeout(60_000);

const { product, nodeAgent, controllers } = identity;
const APPS = "/apis/apps/v1/namespaces/kube-system";
const CORE = "/api/v1/namespaces/kube-system";
const AGENTS = `${APPS}/daemonsets/${nodeAgent}`;
const FORMER_CONTROLLERS = `${APPS}/deployments/${product}-kube-controllers`;
const IMAGE = `${identity.imageRegistry}${product}:${VERSION}`;
const problem = apiServerProblem();
const testCluster = testNeeding(problem);

let cluster: OlderCluster;
beforeAll(async () => {
  if (problem === undefined) cluster = await startOlderCluster({ nodes: ["one", "two"], definitions: "none" });
});
afterAll(() => cluster?.stop());

const read = (path: string): Promise<AnyObject> => cluster.objects.read(path);
const find = (objects: AnyObject[], kind: string) => objects.find((each) => each.kind === kind);

async function agentPods(label: string): Promise<readonly AnyObject[]> {
  const pods = await cluster.objects.list(`${CORE}/pods`, { labelSelector: `k8s-app=${label}` });
  return pods.filter((pod: AnyObject) => pod.metadata.deletionTimestamp === undefined);
}

const imagesOf = async (label: string) => (await agentPods(label)).map(({ spec }) => spec.containers[0].image);

function factsOf(version: string, { datastore, network }: StockVariant): Facts {
  return {
    method: { kind: "manifest", network },
    datastore,
    storage: "current",
    version,
    target: VERSION,
    parts: [],
    orchestratorVersion: "v1.33.0",
    nodes: ["one", "two"],
    namespace: "kube-system",
    hasAggregatedApi: false,
    unfinished: [],
    hasApplicationLayerPolicy: false,
    hostEndpoints: [],
    hasUpgradePolicy: false,
    ownedObjects: [],
  };
}

/** As the engine does it: all steps are planned before the first write. */
async function planAll(run: StepRun) {
  const plans = new Map<string, StepPlan>();
  for (const step of [manifestStep, rolloutStep, allPodsStep, formerObjectsStep]) {
    const plan = await run.plan(step);
    if (plan !== undefined) plans.set(step.name, plan);
  }
  return (step: Step) => {
    const planned = plans.get(step.name);
    if (planned === undefined) throw new Error(`${step.name} has nothing to do`);
    return { ...step, planned, plan: async () => planned };
  };
}

/** Lets the next test begin with nothing. */
async function clear(paths: readonly string[]): Promise<void> {
  for (const path of paths) await cluster.objects.remove(path, { propagationPolicy: "Background" });
  await pollUntil(async () => (await cluster.objects.list(`${CORE}/pods`)).length === 0, "no pods");
}

describe("networking and policy from the manifest of v3.26", () => {
  testCluster("is upgraded with the user's edits, and rolled back", async () => {
    const variant = { datastore: "kubernetes", network: "own" } as const;
    const resources = { limits: { memory: "1Gi" } };
    const paths = await layOutManifest(cluster, {
      version: "v3.26.4",
      ...variant,
      edit(objects) {
        const pod = find(objects, "DaemonSet").spec.template.spec;
        pod.containers[0].resources = resources;
        pod.containers[0].env.push({ name: "IP_AUTODETECTION_METHOD", value: "interface=eth.*" });
        const { data } = find(objects, "ConfigMap");
        data.veth_mtu = "1400";
        data.cni_network_config = data.cni_network_config.replace(/,\s*\{\s*"type": "portmap"[^}]*\}\s*\}/, "");
      },
    });
    await pollUntil(async () => (await imagesOf(nodeAgent)).length === 2, "agents of the earlier release");
    // By hand, after the installation.
    await cluster.objects.patch(AGENTS, {
      spec: { template: { spec: { tolerations: [{ operator: "Exists", key: "mine" }] } } },
    });
    await pollUntil(async () => (await read(AGENTS)).status.updatedNumberScheduled === 2, "the edit");
    const [agentsBefore, controllersBefore] = [await read(AGENTS), await read(FORMER_CONTROLLERS)];
    const table = new MemoryTable();
    const run = stepRun({
      objects: cluster.objects,
      facts: factsOf("v3.26.4", variant),
      more: { openDatastore: async () => openMemory(table) },
    });
    const plan = await planAll(run);
    const [manifest, rollout, prune] = [plan(manifestStep), plan(rolloutStep), plan(formerObjectsStep)];

    expect(manifest.planned.obstacles).toEqual([]);
    const change = manifest.planned.changes.find(({ path }) => path === AGENTS);
    expect(change?.diff).toContain(`-          image: docker.io/${product}/node:v3.26.4`);
    expect(change?.diff).toContain(`+          image: ${IMAGE}`);
    expect(change?.conflicts?.map(({ manager }) => manager)).toContain("kubectl-client-side-apply");

    await run.carryOut(manifest);
    await run.carryOut(rollout);
    await run.carryOut(plan(allPodsStep));

    expect(await imagesOf(nodeAgent)).toEqual([IMAGE, IMAGE]);
    const { spec, metadata } = await read(AGENTS);
    const owners = metadata.managedFields.filter(({ fieldsV1 }: AnyObject) => "f:spec" in fieldsV1);
    expect(owners.map(({ manager, operation }: AnyObject) => `${operation} by ${manager}`)).toEqual([
      `Apply by ${identity.adminTool}`,
    ]);
    expect(metadata.annotations).not.toHaveProperty("kubectl.kubernetes.io/last-applied-configuration");
    const [agent] = spec.template.spec.containers;
    expect(agent.resources).toEqual(resources);
    expect(agent.env.map(({ name }: AnyObject) => name)).not.toContain("FELIX_HEALTHENABLED");
    expect(spec.template.spec.tolerations).toEqual([{ operator: "Exists", key: "mine" }]);
    expect(spec.template.spec.initContainers.map(({ name }: AnyObject) => name)).toEqual(["install"]);
    const list = JSON.parse((await read(`${CORE}/configmaps/cni-config`)).data.config);
    expect(list.plugins.map(({ type }: AnyObject) => type)).toEqual([product, "bandwidth"]);
    expect(list.plugins[0].mtu).toBe(1400);
    const { answers } = await openMemory(table).read([{ kind: "prefix", prefix: "/" }]);
    expect(answers[0]?.map(({ value }) => JSON.parse(value).spec)).toEqual([
      { ipv4AddressDetection: "interface=eth.*" },
    ]);
    expect((await read(FORMER_CONTROLLERS)).spec.replicas).toBe(0);
    expect((await read(`${APPS}/deployments/${controllers}`)).spec.replicas).toBe(2);
    expect((await read(`${CORE}/configmaps/${product}-config`)).data).toMatchObject({
      veth_mtu: "1400",
      default_pools: expect.anything(),
    });

    await run.carryOut(prune);
    expect(await read(FORMER_CONTROLLERS)).toBeUndefined();
    expect(Object.keys((await read(`${CORE}/configmaps/${product}-config`)).data)).toEqual(["default_pools"]);
    const role = await read(`/apis/rbac.authorization.k8s.io/v1/clusterroles/${nodeAgent}`);
    const formerRules = role.rules.filter(({ apiGroups }: AnyObject) => apiGroups.includes(`crd.${identity.apiGroup}`));
    const refusal = { resources: ["clusterinformations"], verbs: ["get"], resourceNames: ["default"] };
    expect(formerRules).toEqual([{ apiGroups: [`crd.${identity.apiGroup}`], ...refusal }]);
    const again = stepRun({
      objects: cluster.objects,
      facts: factsOf(VERSION, variant),
      more: { openDatastore: async () => openMemory(table) },
    });
    for (const step of [manifestStep, rolloutStep, allPodsStep, formerObjectsStep])
      expect(await again.plan(step)).toBeUndefined();

    await run.rollback(prune, prune.planned);
    expect((await read(FORMER_CONTROLLERS)).spec.replicas).toBe(0);
    await run.rollback(manifest, manifest.planned);
    expect((await read(AGENTS)).spec.template).toEqual(agentsBefore.spec.template);
    expect((await read(FORMER_CONTROLLERS)).spec).toEqual(controllersBefore.spec);
    expect(await read(`${APPS}/deployments/${controllers}`)).toBeUndefined();
    expect(await read(`${CORE}/configmaps/cni-config`)).toBeUndefined();
    expect(new Set(await imagesOf(nodeAgent))).toEqual(new Set([`docker.io/${product}/node:v3.26.4`]));
    await clear(paths);
  });
});

describe("policy with flannel on etcd from the manifest of v3.22", () => {
  const variant = { datastore: "etcd", network: "other" } as const;
  const facts = factsOf("v3.22.5", variant);
  const later = () => new Date(Date.now() + 60_000);

  testCluster("explains a stall, then accepts pods that are 1/2 ready, node by node", async () => {
    const paths = await layOutManifest(cluster, {
      version: "v3.22.5",
      ...variant,
      edit: (objects) => {
        find(objects, "ConfigMap").data.etcd_endpoints = "http://10.0.0.1:2379";
      },
    });
    await pollUntil(async () => (await agentPods("canal-node")).length === 2, "agents of the earlier release");
    const isNew = (pod: AnyObject) => pod.spec.containers?.[0]?.image === IMAGE && pod.spec.containers.length === 2;
    const isControllers = (pod: AnyObject) => pod.spec.containers?.[0]?.name === controllers;
    cluster.kubelets.behave(isNew, { kind: "crash-loop" });
    cluster.kubelets.behave(isControllers, { kind: "crash-loop" });
    const table = new MemoryTable();
    const run = stepRun({
      objects: cluster.objects,
      facts,
      options: { stallSeconds: 2 },
      more: { openDatastore: async () => openMemory(table), now: later },
    });
    const plan = await planAll(run);
    await run.carryOut(plan(manifestStep));
    const failure = await rejectionOf(() => run.carryOut(plan(rolloutStep)));

    expect(failure).toMatchObject({ kind: "not-ready" });
    expect(failure).toHaveProperty(
      "message",
      expect.stringMatching(new RegExp(`Node \\w+: pod canal-node-\\w+: container ${nodeAgent}: CrashLoopBackOff`)),
    );
    expect(failure).toHaveProperty("message", expect.stringContaining("waits until another node is done"));

    cluster.kubelets.behave(isNew, { kind: "run-partly", readyContainers: 1 });
    await run.carryOut(plan(rolloutStep));
    expect(await imagesOf("canal-node")).toEqual([IMAGE, IMAGE]);
    expect((await read(`${APPS}/daemonsets/canal-node`)).status.numberReady).toBe(0);
    expect((await read(`${CORE}/secrets/${product}-etcd-secrets`)).metadata.uid).toBeString();
    const unstarted = await rejectionOf(() => run.carryOut(plan(allPodsStep)));
    expect(unstarted).toMatchObject({ kind: "not-ready" });
    const text = new RegExp(
      `Deployment ${controllers}: 0 of 2 pods are ready; pod ${controllers}-\\S+ on node \\w+: container ${controllers}: CrashLoopBackOff`,
    );
    expect(unstarted).toHaveProperty("message", expect.stringMatching(text));
    cluster.kubelets.behave(isControllers, { kind: "run" });
    await run.carryOut(plan(allPodsStep));
    await clear([...paths, `${APPS}/deployments/${controllers}`]);
  });
});

describe("an object that is written", () => {
  const metadata = { name: "written", namespace: "kube-system" };
  const path = `${APPS}/daemonsets/written`;
  const twice = [
    { name: "TWICE", value: "1" },
    { name: "TWICE", value: "2" },
  ];
  const daemonSet = (env: readonly object[], more: object = {}) => ({
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata,
    spec: {
      selector: { matchLabels: { app: "written" } },
      template: {
        metadata: { labels: { app: "written" } },
        spec: { nodeSelector: { nowhere: "" }, containers: [{ name: "one", image: "one", env }], ...more },
      },
    },
  });

  const ownersOf = ({ managedFields }: AnyObject, isOwned: (fields: AnyObject) => boolean) =>
    managedFields.filter(({ fieldsV1 }: AnyObject) => isOwned(fieldsV1)).map(({ manager }: AnyObject) => manager);
  const tool = identity.adminTool;

  testCluster("loses what others had set, by server-side apply, except for their metadata", async () => {
    const before = daemonSet(twice, { hostPID: true, initContainers: [{ name: "former", image: "former" }] });
    await cluster.objects.create(`${APPS}/daemonsets`, before);
    await cluster.objects.patch(path, { metadata: { labels: { theirs: "1" }, finalizers: ["example.org/theirs"] } });
    const object = { ...daemonSet([{ name: "ONCE", value: "1" }]), metadata: { ...metadata, labels: { ours: "1" } } };

    expect(await writeObject(cluster.objects, { object, mode: "whole" })).toBe("is applied");
    const { spec, metadata: written } = await read(path);
    expect(spec.template.spec).toMatchObject({ containers: [{ env: [{ name: "ONCE", value: "1" }] }] });
    expect(spec.template.spec).not.toHaveProperty("initContainers");
    expect(spec.template.spec).not.toHaveProperty("hostPID");
    expect(written).toMatchObject({ labels: { theirs: "1", ours: "1" }, finalizers: ["example.org/theirs"] });
    expect(ownersOf(written, (fields) => "f:spec" in fields)).toEqual([tool]);
    expect(ownersOf(written, (fields) => fields["f:metadata"]?.["f:labels"]?.["f:ours"] !== undefined)).toEqual([tool]);
    expect(ownersOf(written, (fields) => fields["f:metadata"]?.["f:labels"]?.["f:theirs"] !== undefined)).not.toContain(
      tool,
    );
    expect(ownersOf(written, (fields) => fields["f:metadata"]?.["f:finalizers"] !== undefined)).not.toContain(tool);
    expect(await writeObject(cluster.objects, { object, mode: "whole" })).toBeUndefined();
    await cluster.objects.patch(path, { metadata: { finalizers: null } });
    await cluster.objects.remove(path);
  });

  testCluster("that is added to stays what others made of it: members are theirs, whole lists have all", async () => {
    const configMap = { apiVersion: "v1", kind: "ConfigMap", metadata };
    const role = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "Role", metadata };
    const rule = (resource: string) => ({ apiGroups: [""], resources: [resource], verbs: ["get"] });
    const roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles";
    const annotations = { "kubectl.kubernetes.io/last-applied-configuration": "{}" };
    await cluster.objects.create(`${CORE}/configmaps`, {
      ...configMap,
      metadata: { ...metadata, annotations },
      data: { theirs: "1" },
    });
    await cluster.objects.create(roles, { ...role, rules: [rule("pods")] });

    const added = { ...configMap, data: { ours: "1" } };
    expect(await writeObject(cluster.objects, { object: added, mode: "add" })).toBe("is applied");
    const { data, metadata: written } = await read(`${CORE}/configmaps/written`);
    expect(data).toEqual({ theirs: "1", ours: "1" });
    expect(written).not.toHaveProperty("annotations");
    expect(ownersOf(written, (fields) => fields["f:data"]?.["f:theirs"] !== undefined)).not.toContain(tool);
    expect(ownersOf(written, (fields) => fields["f:data"]?.["f:ours"] !== undefined)).toEqual([tool]);

    const widened = { ...role, rules: [rule("nodes")] };
    expect(await writeObject(cluster.objects, { object: widened, mode: "add" })).toBe("is applied");
    expect((await read(`${roles}/written`)).rules).toEqual([rule("pods"), rule("nodes")]);
    await cluster.objects.remove(`${CORE}/configmaps/written`);
    await cluster.objects.remove(`${roles}/written`);
  });

  testCluster("is replaced if apply refuses it: a variable that is there twice", async () => {
    await cluster.objects.create(`${APPS}/daemonsets`, daemonSet([], { hostPID: true }));
    const object = daemonSet(twice);

    const done = await writeObject(cluster.objects, { object, mode: "whole" });
    expect(done).toMatch(/^is replaced: .*duplicate entries/);
    const { spec } = await read(path);
    expect(spec.template.spec.containers[0].env).toEqual(twice);
    expect(spec.template.spec).not.toHaveProperty("hostPID");
    await cluster.objects.remove(path);
  });

  testCluster("is replaced if an admission policy does not accept its former content any more", async () => {
    const admission = "/apis/admissionregistration.k8s.io/v1";
    await cluster.objects.create(`${APPS}/daemonsets`, daemonSet([], { hostPID: true }));
    await cluster.objects.create(`${admission}/validatingadmissionpolicies`, {
      metadata: { name: "written" },
      spec: {
        matchConstraints: {
          resourceRules: [
            { apiGroups: ["apps"], apiVersions: ["v1"], operations: ["UPDATE"], resources: ["daemonsets"] },
          ],
        },
        validations: [
          {
            expression: "!has(object.spec.template.spec.hostPID) || !object.spec.template.spec.hostPID",
            message: "no processes of hosts",
          },
        ],
      },
    });
    await cluster.objects.create(`${admission}/validatingadmissionpolicybindings`, {
      metadata: { name: "written" },
      spec: {
        policyName: "written",
        validationActions: ["Deny"],
        matchResources: { objectSelector: {}, namespaceSelector: {} },
      },
    });
    let count = 0;
    const isRefused = async () => {
      const changed = cluster.objects.patch(path, { metadata: { labels: { count: String(++count) } } });
      return (await changed.catch(() => "refused")) === "refused";
    };
    await pollUntil(isRefused, "the policy to work");

    const object = daemonSet([{ name: "ONCE", value: "1" }]);
    const done = await writeObject(cluster.objects, { object, mode: "whole" });
    expect(done).toMatch(/^is replaced: .*no processes of hosts/);
    expect((await read(path)).spec.template.spec).not.toHaveProperty("hostPID");
    for (const kind of ["validatingadmissionpolicybindings", "validatingadmissionpolicies"])
      await cluster.objects.remove(`${admission}/${kind}/written`);
    await cluster.objects.remove(path);
  });

  testCluster(
    "has its former owners again if the tool was killed after it took over, and it is rolled back",
    async () => {
      const annotations = { "kubectl.kubernetes.io/last-applied-configuration": "{}" };
      await cluster.objects.create(`${APPS}/daemonsets`, { ...daemonSet([]), metadata: { ...metadata, annotations } });
      const before = await read(path);
      const killed = { ...cluster.objects, apply: () => Promise.reject(new PluginError("api-unavailable", "killed")) };
      const object = daemonSet([{ name: "ONCE", value: "1" }]);
      expect(await rejectionOf(() => writeObject(killed, { object, mode: "whole" }))).toHaveProperty(
        "message",
        "killed",
      );
      expect(ownersOf((await read(path)).metadata, (fields) => "f:spec" in fields)).toEqual([tool]);

      expect(await restoreObject(cluster.objects, path, before)).toBe(true);
      const { metadata: restored } = await read(path);
      const isSpec = (fields: AnyObject) => "f:spec" in fields;
      expect(ownersOf(restored, isSpec)).toEqual(ownersOf(before.metadata, isSpec));
      expect(restored.annotations).toMatchObject(annotations);
      expect(await restoreObject(cluster.objects, path, before)).toBe(false);
      await cluster.objects.remove(path);
    },
  );
});
