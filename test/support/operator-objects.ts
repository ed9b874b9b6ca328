/** What the tests of the operator look at, and what the orchestrator would do on a cluster with kubelets. */
import { identity } from "../../src/identity.ts";
import { INSTALLATIONS, type Json, type OperatorSite, POOLS, SYSTEM } from "./operator-site.ts";

export const NETWORK = `${identity.product}Network`;
export const DEFAULT = `${INSTALLATIONS}/default`;
export const CONFIG = `/api/v1/namespaces/${SYSTEM}/configmaps/cni-config`;
export const DAEMON_SETS = `/apis/apps/v1/namespaces/${SYSTEM}/daemonsets`;
export const DAEMON_SET = `${DAEMON_SETS}/${identity.nodeAgent}`;
export const UNINSTALL = `${DAEMON_SET}-uninstall`;
export const DEPLOYMENT = `/apis/apps/v1/namespaces/${SYSTEM}/deployments/${identity.controllers}`;
export const ACCOUNT = `/api/v1/namespaces/${SYSTEM}/serviceaccounts/${identity.nodeAgent}`;
export const PODS = `/api/v1/namespaces/${SYSTEM}/pods`;
export const SYSTEM_NAMESPACE = `/api/v1/namespaces/${SYSTEM}`;
export const CONFIGURATIONS = `/apis/${identity.apiGroup}/v3/nodeagentconfigurations`;

export const ADDRESS_LIST = `/api/v1/namespaces/kube-system/configmaps/${identity.product}-address-list`;
const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
/** Of a policy of the product. */
export function bindingPath(policy: string): string {
  return `${ADMISSION}/validatingadmissionpolicybindings/${identity.product}-${policy}`;
}

const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const APPLIED = [
  ...["namespaces", "serviceaccounts", "configmaps"].map((plural) => `/api/v1/${plural}`),
  ...["daemonsets", "deployments"].map((plural) => `/apis/apps/v1/${plural}`),
  "/apis/policy/v1/poddisruptionbudgets",
  ...["clusterroles", "clusterrolebindings", "roles", "rolebindings"].map((plural) => `${RBAC}/${plural}`),
  "/apis/storage.k8s.io/v1/csidrivers",
  `${ADMISSION}/validatingadmissionpolicies`,
  `${ADMISSION}/validatingadmissionpolicybindings`,
  POOLS,
  CONFIGURATIONS,
];

export const SPEC = { [NETWORK]: { ipPools: [{ cidr: "10.10.0.0/16" }] } };

export function condition(object: Json, type: string): Json {
  return object?.status?.conditions?.find((each: Json) => each.type === type) ?? {};
}

export function createInstallation(site: OperatorSite, spec: object): Promise<Json> {
  const apiVersion = `${identity.operatorApiGroup}/v1`;
  const body = JSON.stringify({ apiVersion, kind: "Installation", metadata: { name: "default" }, spec });
  return site.send({ method: "POST", path: INSTALLATIONS, body });
}

/** A Deployment in namespace "choosers" whose pods, of which there are none, choose addresses. */
export const CHOOSER = "/apis/apps/v1/namespaces/choosers/deployments/web";
export async function createChooser(site: OperatorSite): Promise<void> {
  const chosen = ["floatingIPs", "ipAddrsNoIpam"].map((name) => [`${identity.annotationPrefix}${name}`, "[]"]);
  const metadata = { labels: { app: "web" }, annotations: Object.fromEntries(chosen) };
  const template = { metadata, spec: { containers: [{ name: "main", image: "none" }] } };
  const spec = { replicas: 0, selector: { matchLabels: metadata.labels }, template };
  const deployment = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web" }, spec };
  await site.server.createNamespace("choosers");
  await site.send({ method: "POST", path: CHOOSER.replace("/web", ""), body: JSON.stringify(deployment) });
}

/** Everything with the operator's label, by its place. */
async function applied(site: OperatorSite): Promise<readonly (readonly [string, Json])[]> {
  const query = { labelSelector: `app.kubernetes.io/managed-by=${identity.operator}` };
  const lists = await Promise.all(
    APPLIED.map(async (path) => {
      const { items } = await site.send({ method: "GET", path, query });
      return items.map((item: Json) => [`${path} ${item.metadata.namespace ?? ""} ${item.metadata.name}`, item]);
    }),
  );
  return lists.flat();
}

export async function versions(site: OperatorSite): Promise<Readonly<Record<string, string>>> {
  return Object.fromEntries((await applied(site)).map(([place, { metadata }]) => [place, metadata.resourceVersion]));
}

/** What is the same after every installation of the same Installation. */
export async function contents(site: OperatorSite): Promise<Readonly<Record<string, Json>>> {
  const rows = (await applied(site)).map(([place, { metadata, status: _, ...object }]) => {
    const { labels, annotations = {} } = metadata;
    // Of each write, and of the controller manager.
    const { [`${identity.labelPrefix}write`]: _write, ...others } = annotations;
    return [place, { ...object, labels, annotations: others }];
  });
  return Object.fromEntries(rows);
}

/** As the orchestrator reports if every pod runs. */
export async function reportRunning(site: OperatorSite): Promise<void> {
  await reportDaemonSet(site, DAEMON_SET, 2);
  const { metadata, spec } = await site.read(DEPLOYMENT);
  const { replicas } = spec;
  const counts = { replicas, updatedReplicas: replicas, readyReplicas: replicas, availableReplicas: replicas };
  await site.patch(`${DEPLOYMENT}/status`, { status: { observedGeneration: metadata.generation, ...counts } });
}

export async function reportDaemonSet(site: OperatorSite, path: string, pods: number): Promise<void> {
  const { metadata } = await site.read(path);
  await site.patch(`${path}/status`, {
    status: {
      observedGeneration: metadata.generation,
      desiredNumberScheduled: pods,
      currentNumberScheduled: pods,
      numberMisscheduled: 0,
      numberReady: pods,
      numberAvailable: pods,
      updatedNumberScheduled: pods,
    },
  });
}

/** The orchestrator's part in deleting a namespace: without it the namespace stays. */
export async function finishNamespace(site: OperatorSite): Promise<void> {
  const namespace = await site.read(SYSTEM_NAMESPACE);
  if (namespace === undefined) return;
  const body = JSON.stringify({ ...namespace, spec: { ...namespace.spec, finalizers: [] } });
  await site.send({ method: "PUT", path: `${SYSTEM_NAMESPACE}/finalize`, body });
}
