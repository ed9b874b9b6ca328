/**
 * A cluster as an earlier release left it, ready to be laid out: a real API server and controller manager (with garbage
 * collector), nodes whose kubelets are imitated, `crd.vendor.org/v1` and, if wanted, the aggregated API of `vendor.org/v3`.
 *
 *   await using cluster = await startOlderCluster({ nodes: ["one", "two"], aggregatedApi: "identity" });
 */
import type { KubeClient } from "../../../src/kube/api.ts";
import { openKubeClient } from "../../../src/kube/client.ts";
import { type ClusterObjects, clusterObjects } from "../../../src/kube/objects.ts";
import { FORMER_API_SERVER } from "../../../src/upgrade/former-names.ts";
import { makeRoot, makeSigned } from "../certificates.ts";
import type { Daemon } from "../daemon.ts";
import { type ApiServer, type EarlierRelease, startApiServer } from "../kube-apiserver.ts";
import { temporaryDirectory } from "../temporary-directory.ts";
import { type AggregatedApi, startAggregatedApi } from "./aggregated-api.ts";
import { createFormerDefinitions, FORMER_KINDS } from "./former-definitions.ts";
import type { UidMode } from "./former-object.ts";
import { type ImitatedKubelets, startImitatedKubelets } from "./imitated-kubelets.ts";

export interface OlderClusterPlan {
  readonly nodes?: readonly string[];
  /** How the aggregated API shows UIDs. Absent: there is none, as in an install from a manifest without API server. */
  readonly aggregatedApi?: UidMode;
  /** "none": the resources are in etcd, or the cluster is that of a present release. */
  readonly definitions?: "former" | "none";
  /** By default all. With few, the cluster starts faster. */
  readonly kinds?: readonly string[];
  /** Of the orchestrator; by default today's. */
  readonly release?: EarlierRelease;
}

export interface OlderCluster extends ApiServer {
  /** As the administrator. */
  readonly client: KubeClient;
  readonly objects: ClusterObjects;
  readonly kubelets: ImitatedKubelets;
  readonly controllerManager: Daemon;
  /** Throws if the plan has none. */
  readonly aggregatedApi: AggregatedApi;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Not those that find out that the nodes do not report, or that need a cloud, volumes or networks. */
const CONTROLLERS = [
  "garbage-collector-controller",
  "daemonset-controller",
  "deployment-controller",
  "replicaset-controller",
  "statefulset-controller",
  "job-controller",
  "namespace-controller",
  "serviceaccount-controller",
];

export async function startOlderCluster(plan: OlderClusterPlan = {}): Promise<OlderCluster> {
  await using stack = new AsyncDisposableStack();
  const directory = temporaryDirectory("older-cluster");
  stack.defer(() => directory.remove());
  const proxyAuthority = makeRoot(directory.path, "proxy-authority");
  const proxy = makeSigned(directory.path, "proxy", proxyAuthority, { subject: "/CN=front-proxy-client" });
  const server = await startApiServer({
    apiServerFlags: [
      `--requestheader-client-ca-file=${proxyAuthority.cert}`,
      "--requestheader-allowed-names=front-proxy-client",
      "--requestheader-username-headers=X-Remote-User",
      "--requestheader-group-headers=X-Remote-Group",
      "--requestheader-extra-headers-prefix=X-Remote-Extra-",
      `--proxy-client-cert-file=${proxy.cert}`,
      `--proxy-client-key-file=${proxy.key}`,
    ],
    controllerManagerFlags: [`--controllers=${controllersOf(plan.release).join(",")}`],
    ...(plan.release === undefined ? {} : { release: plan.release }),
  });
  stack.defer(() => server.stop());
  const means = { environment: {}, warn: () => {}, now: () => new Date(), elapsed: () => performance.now() };
  const client = await openKubeClient({ kubeconfigs: [server.adminKubeconfig] }, means);
  stack.defer(() => client.close());
  const objects = clusterObjects(client);

  const nodes = new Map((plan.nodes ?? []).map((name, index) => [name, `192.0.2.${index + 1}`]));
  const kinds = FORMER_KINDS.filter(({ kind }) => plan.kinds?.includes(kind) ?? true);
  const definitions = plan.definitions === "none" ? undefined : createFormerDefinitions(objects, kinds);
  await Promise.all([definitions, ...[...nodes].map(([name, address]) => createNode(objects, name, address))]);
  const kubelets = startImitatedKubelets(client, nodes);
  stack.defer(() => kubelets.stop());

  let api: AggregatedApi | undefined;
  if (plan.aggregatedApi !== undefined) {
    const { service, namespace } = FORMER_API_SERVER;
    const authority = makeRoot(directory.path, "aggregated-authority");
    const names = [`DNS:${service}.${namespace}.svc`];
    const certificate = makeSigned(directory.path, "aggregated", authority, { names });
    const { aggregatedApi: uidMode } = plan;
    api = await startAggregatedApi({ server, certificate, authority, proxyAuthority, uidMode, kinds });
    const { stop } = api;
    stack.defer(() => stop());
  }
  // Now the garbage collector knows all kinds from its start; it looks for new ones only every 30 seconds.
  const controllerManager = server.startControllerManager();
  const owned = stack.move();
  return {
    ...server,
    stop: () => owned.disposeAsync(),
    client,
    objects,
    kubelets,
    controllerManager,
    get aggregatedApi() {
      if (api === undefined) throw new Error("this cluster has no aggregated API");
      return api;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Until v1.27 they had shorter names. */
function controllersOf(release: EarlierRelease | undefined): readonly string[] {
  if (release !== "1.24") return CONTROLLERS;
  return CONTROLLERS.map((name) => name.replace(/-controller$/, "").replaceAll("-", ""));
}

async function createNode(objects: ClusterObjects, name: string, address: string): Promise<void> {
  const labels = { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" };
  await objects.create("/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name, labels } });
  // A new node has the taint "not-ready", which no controller removes here.
  await objects.patch(`/api/v1/nodes/${name}`, { spec: { taints: null } });
  await objects.patch(`/api/v1/nodes/${name}/status`, {
    status: {
      addresses: [{ type: "InternalIP", address }],
      allocatable: { cpu: "8", memory: "16Gi", pods: "110" },
      capacity: { cpu: "8", memory: "16Gi", pods: "110" },
      conditions: [{ type: "Ready", status: "True", reason: "KubeletReady" }],
    },
  });
}
