/** The kinds of objects that an installation consists of, and where the API has them. An object of another kind cannot be applied. Pure. */
import { PluginError } from "../errors.ts";
import { apiVersionOf, OPERATOR_API } from "../identity.ts";
import { quoted } from "../quote.ts";
import { ADMISSION_API } from "./admission/policy-objects.ts";
import type { KubeObject } from "./kube-object.ts";

const RBAC = "rbac.authorization.k8s.io/v1";

/** Followed in all namespaces, by the operator's label, under the name of the row. */
export const RENDERED_KINDS = {
  namespaces: { apiVersion: "v1", kind: "Namespace", isNamespaced: false },
  serviceaccounts: { apiVersion: "v1", kind: "ServiceAccount", isNamespaced: true },
  configmaps: { apiVersion: "v1", kind: "ConfigMap", isNamespaced: true },
  daemonsets: { apiVersion: "apps/v1", kind: "DaemonSet", isNamespaced: true },
  deployments: { apiVersion: "apps/v1", kind: "Deployment", isNamespaced: true },
  poddisruptionbudgets: { apiVersion: "policy/v1", kind: "PodDisruptionBudget", isNamespaced: true },
  clusterroles: { apiVersion: RBAC, kind: "ClusterRole", isNamespaced: false },
  clusterrolebindings: { apiVersion: RBAC, kind: "ClusterRoleBinding", isNamespaced: false },
  roles: { apiVersion: RBAC, kind: "Role", isNamespaced: true },
  rolebindings: { apiVersion: RBAC, kind: "RoleBinding", isNamespaced: true },
  validatingadmissionpolicies: { apiVersion: ADMISSION_API, kind: "ValidatingAdmissionPolicy", isNamespaced: false },
  validatingadmissionpolicybindings: {
    apiVersion: ADMISSION_API,
    kind: "ValidatingAdmissionPolicyBinding",
    isNamespaced: false,
  },
  csidrivers: { apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", isNamespaced: false },
  services: { apiVersion: "v1", kind: "Service", isNamespaced: true },
  apiservices: { apiVersion: "apiregistration.k8s.io/v1", kind: "APIService", isNamespaced: false },
} as const;

export type RenderedPlural = keyof typeof RENDERED_KINDS;

/** Secrets are applied but not followed: the operator may not read those of all namespaces. The admin tool applies the rest. */
const APPLIED_KINDS = {
  ...RENDERED_KINDS,
  secrets: { apiVersion: "v1", kind: "Secret", isNamespaced: true },
  customresourcedefinitions: {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    isNamespaced: false,
  },
  installations: { apiVersion: apiVersionOf(OPERATOR_API), kind: "Installation", isNamespaced: false },
} as const;

/** `/apis/apps/v1/namespaces/vendor-system/daemonsets/vendor-node` */
export function objectPath({ apiVersion, kind, metadata }: KubeObject): string {
  const row = Object.entries(APPLIED_KINDS).find(([, row]) => row.apiVersion === apiVersion && row.kind === kind);
  if (row === undefined) {
    throw new PluginError(
      "internal",
      `Cannot apply ${kind} ${quoted(metadata.name)}: ${apiVersion} is not a known kind`,
    );
  }
  const [plural, { isNamespaced }] = row;
  const namespace = isNamespaced ? `/namespaces/${metadata.namespace ?? "default"}` : "";
  return `${groupPath(apiVersion)}${namespace}/${plural}/${metadata.name}`;
}

/** `DaemonSet vendor-system/vendor-node` */
export function describeObject({ kind, metadata: { namespace, name } }: KubeObject): string {
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}

/** `/api/v1`, `/apis/apps/v1` */
export function groupPath(apiVersion: string): string {
  return apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
}
