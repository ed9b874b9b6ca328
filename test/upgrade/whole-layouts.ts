/** Clusters of earlier releases, laid out whole: one of each way to install them, with pods that run. */
import { join } from "node:path";
import { API_VERSION, apiVersionOf, identity, OPERATOR_API } from "../../src/identity.ts";
import { CLUSTER_INFORMATION } from "../../src/model/kinds.ts";
import { comparedManifest, stockManifest } from "../../src/upgrade/published/stock-manifest.ts";
import { makeHelm } from "../support/helm.ts";
import type { EarlierRelease } from "../support/kube-apiserver.ts";
import { writeFormerChart } from "../support/older-cluster/chart.ts";
import type { AnyObject } from "../support/older-cluster/former-object.ts";
import { type OlderCluster, startOlderCluster } from "../support/older-cluster/older-cluster.ts";
import {
  createFormerComponents,
  createFormerOperatorDefinitions,
  type FormerVersion,
  formerInstallation,
  formerInstallationSpec,
  formerOperator,
} from "../support/older-cluster/operator.ts";
import {
  createFormerPods,
  createFormerResources,
  FORMER_PODS,
  formerResources,
} from "../support/older-cluster/resources.ts";
import { pollUntil } from "../support/poll.ts";
import { isCompared, withPublishedFacts } from "../support/published-facts.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { openEtcdStoreAt } from "../support/test-store.ts";
import { addAddress } from "./add-address.ts";

export interface Layout {
  readonly title: string;
  readonly method: "manifest" | "operator" | "chart";
  /** Absent: the orchestrator's API. */
  readonly datastore?: "etcd";
  /** Of the orchestrator; absent: today's. */
  readonly release?: EarlierRelease;
  start(): Promise<OlderCluster>;
}

/** In `published-facts.jsonl`. */
type RecordedRelease = "v3.24.0" | "v3.25.2" | "v3.27.5";

const NODES = ["one", "two"];
/** A virtual kubelet: the user has excluded it from the DaemonSet of the node agents. */
const EXCLUDED = { name: "virtual", labels: { "kubernetes.io/os": "linux", type: "virtual-kubelet" } };
const POOL = "192.168.0.0/16";
const INSTALLATIONS = `/apis/${apiVersionOf(OPERATOR_API)}/installations`;

export function manifestLayout(
  version: FormerVersion,
  network: "own" | "other" | "fabric",
  release?: EarlierRelease,
): Layout {
  const method = "manifest";
  return {
    title: `the manifest "${network}" of ${version}${on(release)}`,
    method,
    ...(release === undefined ? {} : { release }),
    start: () =>
      laidOut({ version, method, release }, async (cluster) => {
        const objects = await stockManifest(version, { datastore: "kubernetes", network });
        if (objects === undefined) throw new Error(`there is no manifest of ${version}`);
        await createExcludedNode(cluster);
        await cluster.apply(JSON.stringify(listOf(objects.map(servable).map(withoutExcluded))));
      }),
  };
}

/**
 * As it was published, of a release whose manifest the tool does not have: that of the next one, with what is recorded of this
 * release at the places that are compared.
 */
export function uneditedLayout(release: RecordedRelease, network: "own" | "other" | "fabric"): Layout {
  const method = "manifest";
  return {
    title: `the unedited manifest "${network}" of ${release}`,
    method,
    start: () =>
      laidOut({ version: release, method, release: undefined }, async (cluster) => {
        const around = await comparedManifest(release, { datastore: "kubernetes", network });
        if (around === undefined || around.isOwn) throw new Error(`the manifest of ${release} is not a recorded one`);
        const facts = withPublishedFacts(around.objects, { release, title: network });
        const others = around.objects.filter((object) => !isCompared(object));
        await cluster.apply(JSON.stringify(listOf([...others, ...facts].map(servable))));
      }),
  };
}

/** Its records are in the etcd of the API server; the present programs write them, since their format is the same. */
export function etcdLayout(version: FormerVersion, release?: EarlierRelease): Layout {
  const [method, datastore] = ["manifest", "etcd"] as const;
  return {
    title: `the manifest for etcd of ${version}${on(release)}`,
    method,
    datastore,
    ...(release === undefined ? {} : { release }),
    start: () =>
      laidOut({ version, method, datastore, release }, async (cluster) => {
        const objects = await stockManifest(version, { datastore, network: "own" });
        if (objects === undefined) throw new Error(`there is no manifest of ${version}`);
        await createEtcdRecords(cluster, version);
        const endpoints = withEtcdEndpoints(cluster.etcdEndpoint);
        await createExcludedNode(cluster);
        await cluster.apply(JSON.stringify(listOf(objects.map(servable).map(withoutExcluded).map(endpoints))));
      }),
  };
}

export function operatorLayout(version: FormerVersion, release?: EarlierRelease): Layout {
  const method = "operator";
  return {
    title: `the operator of ${version}${on(release)}`,
    method,
    ...(release === undefined ? {} : { release }),
    start: () =>
      laidOut({ version, method, release }, async (cluster) => {
        await createFormerOperatorDefinitions(cluster.objects);
        await cluster.apply(JSON.stringify(listOf(formerOperator(version))));
        await cluster.apply(JSON.stringify(formerInstallation(POOL)));
        await createComponents(cluster, version);
      }),
  };
}

/** By the real Helm; before v3.23 in another namespace than the operator's. */
export function chartLayout(version: FormerVersion, release?: EarlierRelease): Layout {
  const method = "chart";
  return {
    title: `the chart of ${version}${on(release)}`,
    method,
    ...(release === undefined ? {} : { release }),
    start: () =>
      laidOut({ version, method, release }, async (cluster) => {
        await createFormerOperatorDefinitions(cluster.objects);
        const helm = makeHelm("helm3", cluster.directory, cluster.adminKubeconfig);
        const chart = writeFormerChart(join(cluster.directory, "former-chart"), version, {
          hasPodSecurityPolicy: release === "1.24" && version < "v3.23",
        });
        const values = join(cluster.directory, "values.json");
        const installation = { enabled: true, ...formerInstallationSpec(POOL) };
        await Bun.write(values, JSON.stringify({ installation, apiServer: { enabled: true } }));
        const place = version < "v3.23" ? "default" : identity.operator;
        await helm("install", "net", chart, `--namespace=${place}`, "--create-namespace", `--values=${values}`);
        await createComponents(cluster, version);
      }),
  };
}

function on(release: EarlierRelease | undefined): string {
  return release === undefined ? "" : ` on Kubernetes ${release}`;
}

/** What the operator of that release made of the Installation. */
async function createComponents({ objects, apply }: OlderCluster, version: FormerVersion): Promise<void> {
  const installation = (await objects.read(`${INSTALLATIONS}/default`)) ?? {};
  await createFormerComponents((object) => apply(JSON.stringify(object)), version, installation);
}

function listOf(items: readonly object[]): object {
  return { apiVersion: "v1", kind: "List", items };
}

/** Versions of the API that present API servers have removed: what an upgraded API server shows instead. */
function servable(object: AnyObject): AnyObject {
  return object.apiVersion === "policy/v1beta1" ? { ...object, apiVersion: "policy/v1" } : object;
}

async function createExcludedNode({ objects }: OlderCluster): Promise<void> {
  await objects.create("/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: EXCLUDED });
  const conditions = [{ type: "Ready", status: "True", reason: "KubeletReady" }];
  await objects.patch(`/api/v1/nodes/${EXCLUDED.name}/status`, { status: { conditions } });
}

/** DaemonSets as the user has edited them. */
function withoutExcluded(object: AnyObject): AnyObject {
  if (object.kind !== "DaemonSet") return object;
  const expression = { key: "type", operator: "NotIn", values: [EXCLUDED.labels.type] };
  const required = { nodeSelectorTerms: [{ matchExpressions: [expression] }] };
  const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } };
  const { template } = object.spec;
  return {
    ...object,
    spec: { ...object.spec, template: { ...template, spec: { ...template.spec, affinity } } },
  };
}

function withEtcdEndpoints(endpoint: string): (object: AnyObject) => AnyObject {
  return (object) =>
    object.data?.etcd_endpoints === undefined
      ? object
      : { ...object, data: { ...object.data, etcd_endpoints: endpoint } };
}

async function createEtcdRecords({ etcdEndpoint, adminKubeconfig }: OlderCluster, version: string): Promise<void> {
  const pool = {
    apiVersion: API_VERSION,
    kind: "IPPool",
    metadata: { name: "default-ipv4-ippool" },
    spec: { cidr: POOL, ipipMode: "Always", natOutgoing: true },
  };
  const environment = { DATASTORE_TYPE: "etcdv3", ETCD_ENDPOINTS: etcdEndpoint, KUBECONFIG: adminKubeconfig };
  await runTool(["datastore", "init"], environment);
  await runTool(["apply", "--filename=-"], environment, JSON.stringify(pool));
  for (const { address, container, node, namespace, name } of FORMER_PODS) {
    const args = [`IP=${address}`, `K8S_POD_NAMESPACE=${namespace}`, `K8S_POD_NAME=${name}`].join(";");
    await addAddress({ container, node, args, datastore: { datastore_type: "etcdv3", etcd_endpoints: etcdEndpoint } });
  }
  const store = await openEtcdStoreAt(etcdEndpoint);
  try {
    const key = CLUSTER_INFORMATION.key({ name: "default" });
    const information = JSON.parse((await store.list()).get(key) ?? "{}");
    const spec = { ...information.spec, [`${identity.product}Version`]: version };
    await store.put([{ kind: "put", key, value: JSON.stringify({ ...information, spec }) }]);
  } finally {
    await store.close();
  }
}

async function runTool(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  stdin = "",
): Promise<void> {
  const child = Bun.spawn([builtProgram(identity.adminTool), ...args], {
    env: { PATH: process.env["PATH"] ?? "", ...environment },
    stdin: Buffer.from(stdin),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}:\n${stdout}\n${stderr}`);
}

interface LaidOut extends Pick<Layout, "method" | "datastore"> {
  readonly version: FormerVersion | RecordedRelease;
  readonly release: EarlierRelease | undefined;
}

/** With resources of the release, and pods that run; ends the cluster if that fails. */
async function laidOut(
  { version, method, datastore, release }: LaidOut,
  install: (cluster: OlderCluster) => Promise<void>,
): Promise<OlderCluster> {
  const uids = version < "v3.28" ? "identity" : "bit-reversed";
  const cluster = await startOlderCluster({
    nodes: NODES,
    ...(datastore === "etcd" ? { definitions: "none" } : { aggregatedApi: uids }),
    ...(release === undefined ? {} : { release }),
  });
  try {
    // With an account, which pods need: the controller manager creates it later.
    for (const namespace of new Set(FORMER_PODS.map((pod) => pod.namespace))) await cluster.createNamespace(namespace);
    await createFormerPods(cluster.objects);
    if (datastore !== "etcd")
      await createFormerResources(cluster.client, formerResources({ release: version }).map(withPoolOf(method)));
    await install(cluster);
    await pollUntil(() => isRunning(cluster), "the pods of the earlier release");
    return cluster;
  } catch (failure) {
    await cluster.stop();
    throw failure;
  }
}

type FormerResource = ReturnType<typeof formerResources>[number];

/** The operator has made the pool as the Installation declares it. */
function withPoolOf(method: Layout["method"]): (resource: FormerResource) => FormerResource {
  return (resource) => {
    const { plural, object } = resource;
    if (method === "manifest" || plural !== "ippools") return resource;
    return { plural, object: { ...object, spec: { ...object.spec, ipipMode: "Never", vxlanMode: "CrossSubnet" } } };
  };
}

async function isRunning({ objects }: OlderCluster): Promise<boolean> {
  const daemonSets: readonly AnyObject[] = await objects.list("/apis/apps/v1/daemonsets");
  const pods: readonly AnyObject[] = await objects.list("/api/v1/pods");
  const areAgentsReady = daemonSets.every(({ status }) => status.numberAvailable === NODES.length);
  return areAgentsReady && pods.length > FORMER_PODS.length && pods.every(({ status }) => status.phase === "Running");
}
