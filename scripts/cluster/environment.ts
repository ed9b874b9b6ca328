/**
 * A cluster of private hosts with the network installed: what `make cluster` keeps, and what `make demo CLUSTER=1` begins with.
 * It ends with the process that opened it.
 */
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { formatYaml } from "../../src/yaml.ts";
import { type BareControlPlane, type BareNode, openBareControlPlane } from "../../test/support/bare-cluster.ts";
import {
  type InstalledStore,
  installationOn,
  installOperator,
  untilInstalled,
} from "../../test/support/operator-install.ts";
import { NAMESPACE, type Pods, podsOn } from "../../test/support/pods-in-namespace.ts";
import type { Output, StepResult } from "../demo/output.ts";

export interface ClusterPlan {
  readonly store: InstalledStore;
  readonly nodes: number;
  /** By default none are recorded. */
  readonly flows?: "Enabled";
  /** By default there is none. */
  readonly console?: "Enabled";
}

export interface ClusterEnvironment extends AsyncDisposable {
  readonly cluster: BareControlPlane;
  readonly nodes: readonly BareNode[];
  readonly pods: Pods;
  /** Selects the cluster and its datastore for the admin tool. */
  readonly settings: Readonly<Record<string, string>>;
  /** Runs the admin tool where kubectl runs too, as the administrator of the cluster. */
  admin(...args: readonly string[]): Promise<string>;
}

export const ADMIN_TOOL = join(import.meta.dir, "../../dist/bin", identity.adminTool);
const LIMIT_MILLISECONDS = 60_000;
/** It may run for days. */
const SMALL_AUDIT_LOG = ["--audit-log-maxsize=50", "--audit-log-maxbackup=1"];

/** Prints each step. */
export async function openCluster({ step }: Output, plan: ClusterPlan): Promise<ClusterEnvironment> {
  const { store, nodes: count } = plan;
  await using undo = new AsyncDisposableStack();
  const { cluster } = await step("Control plane", openControlPlane);
  undo.use(cluster);
  const nodes: BareNode[] = [];
  for (let number = 1; number <= count; number += 1) {
    const { node } = await step(`Node ${number}`, () => addNode(cluster, `node-${number}`));
    nodes.push(node);
  }
  await step("The operator", () => startOperator(cluster));
  await step("An Installation", () => createInstallation(cluster, plan));
  await step("kubectl get nodes", () => showNodes(cluster));
  const { server, host } = cluster;
  const settings = {
    KUBECONFIG: server.adminKubeconfig,
    ...(store === "etcd"
      ? { DATASTORE_TYPE: "etcdv3", ETCD_ENDPOINTS: server.etcdEndpoint }
      : { DATASTORE_TYPE: store }),
  };
  const all = undo.move();
  return {
    cluster,
    nodes,
    pods: podsOn(server),
    settings,
    admin: (...args) =>
      host.must([ADMIN_TOOL, ...args], { environment: settings, limitMilliseconds: LIMIT_MILLISECONDS }),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

interface KubectlVersion {
  readonly serverVersion: { readonly gitVersion: string };
}

async function openControlPlane() {
  const cluster = await openBareControlPlane({ apiServerFlags: SMALL_AUDIT_LOG });
  const version: KubectlVersion = JSON.parse(await cluster.server.kubectl(["version", "--output=json"]));
  return { cluster, summary: `etcd and Kubernetes ${version.serverVersion.gitVersion} on a private host` };
}

async function addNode(cluster: BareControlPlane, name: string) {
  const node = await cluster.addNode(name);
  return { node, summary: `kubelet, containerd and kube-proxy, without a network: ${node.addresses.join(", ")}` };
}

async function startOperator({ server }: BareControlPlane): Promise<StepResult> {
  await installOperator(server);
  return { summary: "kubectl apply of operator-crds.yaml and operator.yaml" };
}

async function createInstallation({ server }: BareControlPlane, plan: ClusterPlan): Promise<StepResult> {
  const { spec, ...rest } = installationOn(server, plan.store);
  const modes = (["flows", "console"] as const).flatMap((part) =>
    plan[part] === undefined ? [] : [[part, { mode: plan[part] }] as const],
  );
  const installation = { ...rest, spec: { ...spec, ...Object.fromEntries(modes) } };
  await server.apply(JSON.stringify(installation));
  await untilInstalled(server);
  await server.createNamespace(NAMESPACE);
  return { summary: `${identity.operator} has installed it on every node`, details: formatYaml(installation) };
}

async function showNodes({ server }: BareControlPlane): Promise<StepResult> {
  const columns = [
    "NAME:.metadata.name",
    "KUBELET:.status.nodeInfo.kubeletVersion",
    "RUNTIME:.status.nodeInfo.containerRuntimeVersion",
    'READY:.status.conditions[?(@.type=="Ready")].status',
    'ADDRESSES:.status.addresses[?(@.type=="InternalIP")].address',
  ];
  const details = await server.kubectl(["get", "nodes", `--output=custom-columns=${columns.join(",")}`]);
  return { summary: "all are Ready", details };
}
