/** Where the API has the objects that an installation consists of. Pure. */
import { PluginError } from "../../errors.ts";
import { apiVersionOf, OPERATOR_API } from "../../identity.ts";
import type { KubeObject } from "../../operator/kube-object.ts";
import { quoted } from "../../quote.ts";

const RBAC = "rbac.authorization.k8s.io/v1";

/** By API version and kind; a plural that ends with a slash is that of a kind in namespaces. */
const PLURALS: Readonly<Record<string, string>> = {
  "apiextensions.k8s.io/v1 CustomResourceDefinition": "customresourcedefinitions",
  "v1 Namespace": "namespaces",
  "v1 ServiceAccount": "serviceaccounts/",
  "v1 ConfigMap": "configmaps/",
  "v1 Secret": "secrets/",
  "v1 Service": "services/",
  "apps/v1 Deployment": "deployments/",
  "apps/v1 DaemonSet": "daemonsets/",
  "policy/v1 PodDisruptionBudget": "poddisruptionbudgets/",
  [`${RBAC} ClusterRole`]: "clusterroles",
  [`${RBAC} ClusterRoleBinding`]: "clusterrolebindings",
  [`${RBAC} Role`]: "roles/",
  [`${RBAC} RoleBinding`]: "rolebindings/",
  [`${apiVersionOf(OPERATOR_API)} Installation`]: "installations",
};

/** `/apis/apps/v1/namespaces/vendor-operator/deployments/vendor-operator` */
export function objectPath({ apiVersion, kind, metadata }: KubeObject): string {
  const plural = PLURALS[`${apiVersion} ${kind}`];
  if (plural === undefined) {
    throw new PluginError(
      "internal",
      `Cannot apply ${kind} ${quoted(metadata.name)}: ${apiVersion} is not a known kind`,
    );
  }
  const group = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const namespace = plural.endsWith("/") ? `/namespaces/${metadata.namespace ?? "default"}` : "";
  return `${group}${namespace}/${plural.replace("/", "")}/${metadata.name}`;
}

/** `deployment vendor-operator/vendor-operator` */
export function describeObject({ kind, metadata: { namespace, name } }: KubeObject): string {
  return `${kind.toLowerCase()} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}
