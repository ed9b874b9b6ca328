/**
 * The steps after all nodes are new, on a real API server: host endpoints and the temporary policy with the real controllers and on
 * both datastores, sidecars with the real rolling update and an injector that is a real webhook.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { sidecarsStep } from "../../src/alp/upgrade/step.ts";
import type { Datastore } from "../../src/datastore/datastore.ts";
import { openDatastore } from "../../src/datastore/open.ts";
import { API_VERSION, identity } from "../../src/identity.ts";
import { GLOBAL_NETWORK_POLICY, HOST_ENDPOINT, KUBE_CONTROLLERS_CONFIGURATION, NODE } from "../../src/model/kinds.ts";
import type { Facts } from "../../src/upgrade/engine/facts.ts";
import { hostEndpointsStep } from "../../src/upgrade/steps/host-endpoints/step.ts";
import { upgradePolicyStep } from "../../src/upgrade/steps/upgrade-policy/step.ts";
import { VERSION } from "../../src/version.ts";
import { startControllers } from "../support/controllers.ts";
import { freePorts } from "../support/etcd.ts";
import { formerInjectorConfig } from "../support/former-injector.ts";
import { FORMER_SIDECAR_IMAGE, INJECTOR, startInjector } from "../support/imitated-injector.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { installCrds } from "../support/kube-crds.ts";
import { customResource } from "../support/kube-resources.ts";
import { testNeeding } from "../support/needs.ts";
import { type OlderCluster, startOlderCluster } from "../support/older-cluster/older-cluster.ts";
import { pollUntil } from "../support/poll.ts";
import { type StepRun, stepRun } from "./step-run.ts";

const problem = apiServerProblem();
const test = testNeeding(problem);
const NODES = ["n1", "n2"];
const FILTERS = "/apis/networking.istio.io/v1alpha3/namespaces/istio-system/envoyfilters";

let cluster: OlderCluster;

beforeAll(async () => {
  if (problem !== undefined) return;
  cluster = await startOlderCluster({ nodes: NODES, definitions: "none" });
  await installCrds(cluster);
}, 120_000);
afterAll(() => cluster?.[Symbol.asyncDispose]());

const FACTS: Omit<Facts, "datastore" | "storage"> = {
  method: { kind: "operator" },
  version: "v3.26.0",
  target: VERSION,
  parts: [],
  orchestratorVersion: "v1.30.0",
  nodes: NODES,
  namespace: "kube-system",
  hasAggregatedApi: false,
  unfinished: [],
  hasApplicationLayerPolicy: true,
  hostEndpoints: [],
  hasUpgradePolicy: true,
  ownedObjects: [],
};

describe.each(["kubernetes", "etcd"] as const)("with %s", (datastore) => {
  let store: Datastore;
  let run: StepRun;

  const put = (key: string, kind: string, metadata: object, spec: object) =>
    store.commit([{ kind: "create", key, value: JSON.stringify({ apiVersion: API_VERSION, kind, metadata, spec }) }]);
  const names = async (prefix: string) =>
    ((await store.read([{ kind: "prefix", prefix }])).answers[0] ?? []).map(
      ({ value }) => JSON.parse(value).metadata.name,
    );

  beforeAll(async () => {
    if (problem !== undefined) return;
    const access = { kubeconfigs: [cluster.adminKubeconfig] };
    const source = { kind: "endpoints", endpoints: [cluster.etcdEndpoint] } as const;
    store = await openDatastore(datastore === "etcd" ? { kind: "etcd", source } : { kind: "orchestrator", access });
    run = stepRun({
      objects: cluster.objects,
      facts: { ...FACTS, datastore, storage: datastore === "etcd" ? "etcd" : "current" },
      options: { automaticHostEndpoints: true, reviewed: true },
      more: { openDatastore: async () => store },
    });
    if (datastore === "etcd") {
      for (const [index, name] of NODES.entries()) {
        const orchRefs = [{ nodeName: name, orchestrator: "k8s" }];
        // As the earlier release found it, and the kubelet reports it.
        const bgp = { ipv4Address: `192.0.2.${index + 1}/24` };
        await put(NODE.key({ name: `own-${name}` }), "Node", { name: `own-${name}` }, { orchRefs, bgp });
      }
    }
    const node = datastore === "etcd" ? "own-n1" : "n1";
    const labels = { role: "edge", "host-endpoint-upgrade": "" };
    await put(
      HOST_ENDPOINT.key({ name: "edge" }),
      "HostEndpoint",
      { name: "edge", labels },
      {
        node,
        interfaceName: "*",
        expectedIPs: ["192.0.2.1"],
      },
    );
    const types = ["Ingress", "Egress"];
    await put(
      GLOBAL_NETWORK_POLICY.key({ name: "edge" }),
      "GlobalNetworkPolicy",
      { name: "edge" },
      {
        selector: "role == 'edge'",
        types,
      },
    );
    const rules = [{ action: "Log" }, { action: "Allow" }];
    await put(
      GLOBAL_NETWORK_POLICY.key({ name: "allow-all-upgrade" }),
      "GlobalNetworkPolicy",
      { name: "allow-all-upgrade" },
      {
        selector: "has(host-endpoint-upgrade)",
        types,
        ingress: rules,
        egress: rules,
      },
    );
  });
  afterAll(() => store?.close());

  test("the temporary policy goes and comes back", async () => {
    const plan = await run.carryOut(upgradePolicyStep);
    expect(await names(GLOBAL_NETWORK_POLICY.prefix())).toEqual(["edge"]);

    await run.rollback(upgradePolicyStep, plan);
    expect(await names(GLOBAL_NETWORK_POLICY.prefix())).toEqual(["allow-all-upgrade", "edge"]);
    expect(await upgradePolicyStep.remaining(run.site, plan)).toHaveLength(2);
    await upgradePolicyStep.act(run.site, plan);
  });

  test("automatic host endpoints of the real controllers replace one of a user, and go again", async () => {
    const [healthPort = 0, metricsPort = 0] = await freePorts(2);
    const key = KUBE_CONTROLLERS_CONFIGURATION.key({ name: "default" });
    await put(
      key,
      "KubeControllersConfiguration",
      { name: "default" },
      {
        prometheusMetricsPort: metricsPort,
        controllers: { node: {} },
      },
    );
    const controllers = startControllers({
      KUBECONFIG: cluster.adminKubeconfig,
      HEALTH_PORT: `${healthPort}`,
      ...(datastore === "etcd"
        ? { DATASTORE_TYPE: "etcdv3", ETCD_ENDPOINTS: cluster.etcdEndpoint }
        : { DATASTORE_TYPE: "kubernetes" }),
    });
    try {
      const automatic = NODES.map((name) => `${datastore === "etcd" ? "own-" : ""}${name}-auto-hep`);
      const plan = await run.carryOut(hostEndpointsStep);
      expect(plan.obstacles).toEqual([]);
      expect(await names(HOST_ENDPOINT.prefix())).toEqual(automatic);
      expect(await hostEndpointsStep.verify?.(run.site, plan)).toEqual([]);
      expect((await cluster.objects.read("/api/v1/nodes/n1"))?.["metadata"]).toMatchObject({
        labels: { role: "edge" },
      });
      expect(await hostEndpointsStep.plan(run.site)).toBeUndefined();

      await run.rollback(hostEndpointsStep, plan);
      await pollUntil(async () => (await names(HOST_ENDPOINT.prefix())).join() === "edge", "the former host endpoint");
      const { metadata } = (await cluster.objects.read("/api/v1/nodes/n1")) as { metadata: { labels: object } };
      expect(metadata.labels).not.toHaveProperty("role");
    } finally {
      await controllers.kill("SIGTERM");
    }
  }, 60_000);
});

describe("sidecars", () => {
  const sidecarsOf = async () => {
    const pods = await cluster.objects.list("/api/v1/namespaces/shop/pods");
    const images = pods.flatMap((pod) => {
      // biome-ignore lint/suspicious/noExplicitAny: a pod.
      const { metadata, spec } = pod as any;
      if (metadata.deletionTimestamp !== undefined) return [];
      return spec.containers
        .map(({ image }: { image: string }) => image)
        .filter((image: string) => image.includes(":v"));
    });
    return [...new Set(images)].sort();
  };

  test("of running workloads are renewed by rolling updates, and again by going back", async () => {
    const { objects } = cluster;
    const kinds = { envoyfilters: "EnvoyFilter", serviceentries: "ServiceEntry" };
    const api = { group: "networking.istio.io", version: "v1alpha3", namespaced: true };
    for (const [plural, kind] of Object.entries(kinds)) {
      await cluster.apply(JSON.stringify(customResource({ ...api, plural, kind })));
    }
    for (const namespace of ["istio-system", "shop"]) await cluster.createNamespace(namespace);
    await objects.create(INJECTOR.slice(0, INJECTOR.lastIndexOf("/")), {
      metadata: { name: "istio-sidecar-injector" },
      data: { config: formerInjectorConfig("1.15") },
    });
    const labels = { app: "istiod" };
    const workload = (replicas: number, app: string, image: string) => ({
      replicas,
      selector: { matchLabels: { app } },
      template: { metadata: { labels: { app } }, spec: { containers: [{ name: "main", image }] } },
    });
    await objects.create("/apis/apps/v1/namespaces/istio-system/deployments", {
      metadata: { name: "istiod", labels },
      spec: workload(0, "istiod", "registry.example.org/pilot:1.15.3"),
    });
    await pollUntil(async () => (await objects.read(FILTERS)) !== undefined, "the kind EnvoyFilter");
    await objects.create(FILTERS, {
      apiVersion: "networking.istio.io/v1alpha3",
      kind: "EnvoyFilter",
      metadata: { name: "ext-authz" },
      spec: { configPatches: [{ patch: { value: { cluster_name: "outbound|1||dikastes.vendor.cluster.local" } } }] },
    });
    using _ = await startInjector(objects, { namespace: "shop", directory: cluster.directory });
    await objects.create("/apis/apps/v1/namespaces/shop/deployments", {
      metadata: { name: "web" },
      spec: workload(2, "web", "app"),
    });
    await objects.create("/apis/apps/v1/namespaces/shop/daemonsets", {
      metadata: { name: "probe" },
      spec: { selector: { matchLabels: { app: "probe" } }, template: workload(0, "probe", "app").template },
    });
    await pollUntil(async () => {
      const { status } = (await objects.read("/apis/apps/v1/namespaces/shop/deployments/web")) as { status: object };
      return "availableReplicas" in status && status.availableReplicas === 2;
    }, "the pods of web");
    expect(await sidecarsOf()).toEqual([FORMER_SIDECAR_IMAGE]);
    const nothing = { read: async () => ({ revision: "1", answers: [[]] }) } as unknown as Datastore;
    const run = stepRun({
      objects,
      facts: { ...FACTS, datastore: "kubernetes", storage: "current" },
      more: { openDatastore: async () => nothing },
    });

    const plan = await run.carryOut(sidecarsStep);
    expect(plan.changes.map(({ action, what }) => `${action} ${what}`)).toEqual([
      "update ConfigMap istio-system/istio-sidecar-injector",
      "restart DaemonSet shop/probe",
      "restart Deployment shop/web",
      `create EnvoyFilter istio-system/${identity.sidecar}`,
      "delete EnvoyFilter istio-system/ext-authz",
    ]);
    const [image, ...others] = await sidecarsOf();
    expect([image?.endsWith(`:${VERSION}`), others]).toEqual([true, []]);
    expect(await sidecarsStep.plan(run.site)).toBeUndefined();

    await run.rollback(sidecarsStep, plan);
    expect(await sidecarsOf()).toEqual([FORMER_SIDECAR_IMAGE]);
    expect(await objects.read(`${FILTERS}/ext-authz`)).toBeDefined();
  }, 60_000);
});
