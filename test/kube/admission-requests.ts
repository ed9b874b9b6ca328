/** The users and requests of the tests of `deploy/admission/`. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";

const { product, annotationPrefix } = identity;
export const WITHOUT_IPAM = `${annotationPrefix}ipAddrsNoIpam`;
export const FLOATING = `${annotationPrefix}floatingIPs`;
export const SOURCES = `${annotationPrefix}allowedSourcePrefixes`;
export const RECORDED = `${annotationPrefix}podIP`;
/** Others in which the plugin records what a pod may use. */
export const ALSO_RECORDED = [`${annotationPrefix}ipNATs`, `${annotationPrefix}allowSpoofedSourcePrefixes`] as const;
export const LIST = `${product}-address-list`;
export const POLICIES = `${product}-address-policies`;
/** Of the policy that needs the list. */
export const BINDING = `${product}-chosen-addresses`;

/** May do everything with pods in all namespaces but patch their status, as the role "edit" grants it. */
export const DEVELOPER = "developer";
/** May do what a scheduler may. */
export const SCHEDULER = "scheduler";
/** May also patch the status of pods, as the network plugin. */
export const PLUGIN = "plugin";

export function manifest(name: string): string {
  return readFileSync(join(import.meta.dir, "../../deploy/admission", `${name}.yaml`), "utf8");
}

interface PodPlan {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly serviceAccount?: string;
}

export function pod(namespace: string, name: string, plan: PodPlan = {}): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, annotations: plan.annotations },
    spec: podSpec(plan.serviceAccount),
  });
}

/** What a kubelet creates for a static pod. */
export function mirrorPod(
  namespace: string,
  plan: { readonly node: string; readonly uid: string; readonly annotations: Readonly<Record<string, string>> },
): string {
  const { node, uid, annotations } = plan;
  const owner = { apiVersion: "v1", kind: "Node", name: node, uid, controller: true };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: `static-${node}`,
      namespace,
      annotations: { "kubernetes.io/config.mirror": "none", ...annotations },
      ownerReferences: [owner],
    },
    spec: { nodeName: node, ...podSpec() },
  });
}

function podSpec(serviceAccountName?: string): object {
  return { serviceAccountName, containers: [{ name: "main", image: "none" }] };
}

export function deployment(namespace: string, annotations: Readonly<Record<string, string>>): string {
  const labels = { app: "web" };
  return JSON.stringify({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", namespace },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels, annotations }, spec: podSpec() } },
  });
}

/** Arguments and standard input of kubectl. */
export type Request = readonly [args: readonly string[], stdin?: string | undefined];

export function creation(object: string): Request {
  return [["create", "--filename=-"], object];
}

export function dryRun(object: string): Request {
  return [["create", "--dry-run=server", "--filename=-"], object];
}

/** What a scheduler sends; the API server copies its annotations to the pod. */
export function bindingRequest(name: string, annotation: string, resource: "pods" | "bindings" = "pods"): Request {
  const path = resource === "pods" ? `pods/${name}/binding` : "bindings";
  const object = {
    apiVersion: "v1",
    kind: "Binding",
    metadata: { name, namespace: "plain", annotations: { [annotation]: '["192.0.2.9"]' } },
    target: { kind: "Node", name: "node" },
  };
  return [["create", "--raw", `/api/v1/namespaces/plain/${path}`, "--filename=-"], JSON.stringify(object)];
}
