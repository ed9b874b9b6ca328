/** Accounts, roles and their bindings as objects of the orchestrator's API. Pure. */
import type { KubeObject } from "../kube-object.ts";
import type { PathRule, Rule } from "./rules.ts";

export const RBAC_GROUP = "rbac.authorization.k8s.io";
const API_VERSION = `${RBAC_GROUP}/v1`;

/** What has a place in one namespace. */
export interface Place {
  readonly name: string;
  readonly namespace: string;
}

export function accountObject({ name, namespace }: Place): KubeObject {
  return { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace } };
}

/** A role of the cluster, and its binding to the account. */
export function clusterRoleObjects(
  name: string,
  rules: readonly (Rule | PathRule)[],
  account: Place,
): readonly KubeObject[] {
  return [
    clusterRoleObject(name, rules),
    {
      apiVersion: API_VERSION,
      kind: "ClusterRoleBinding",
      metadata: { name },
      ...granted("ClusterRole", name, account),
    },
  ];
}

export function clusterRoleObject(name: string, rules: readonly (Rule | PathRule)[]): KubeObject {
  return { apiVersion: API_VERSION, kind: "ClusterRole", metadata: { name }, rules };
}

/** A role in one namespace, and its binding to the account. */
export function namespacedRoleObjects(
  { name, namespace }: Place,
  rules: readonly Rule[],
  account: Place,
): readonly KubeObject[] {
  const metadata = { name, namespace };
  return [
    { apiVersion: API_VERSION, kind: "Role", metadata, rules },
    { apiVersion: API_VERSION, kind: "RoleBinding", metadata, ...granted("Role", name, account) },
  ];
}

/** Grants what the role of the cluster with the same name permits, but in one namespace alone. */
export function clusterRoleInNamespace({ name, namespace }: Place, account: Place): KubeObject {
  const metadata = { name, namespace };
  return { apiVersion: API_VERSION, kind: "RoleBinding", metadata, ...granted("ClusterRole", name, account) };
}

function granted(kind: "ClusterRole" | "Role", role: string, { name, namespace }: Place) {
  return {
    roleRef: { apiGroup: RBAC_GROUP, kind, name: role },
    subjects: [{ kind: "ServiceAccount", name, namespace }],
  };
}
