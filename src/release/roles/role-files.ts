/**
 * The roles for an installation without pods, in `deploy/rbac/`. Plugin and node agent run on the host and have an account
 * each (`hostAccountsManifest`); hosts that were installed before share one (`roleManifest`). Generated from src/release/roles.
 */

import type { Identity } from "../../identity.ts";
import { formatYaml } from "../../yaml.ts";
import { accountObject, clusterRoleObjects, namespacedRoleObjects } from "./role-objects.ts";
import {
  controllersRules,
  HOLD_LEASE,
  hostAgentNamespaceRules,
  hostAgentRules,
  NODE_AGENT_RULES,
  PLUGIN_ACCOUNT,
  pluginRules,
  READ_PASSWORDS,
  type Rule,
  type RuleDatastore,
} from "./rules.ts";

/**
 * "node-kubernetes": what the node agent needs in addition to the plugin's role, to enforce policy with that datastore. With etcd
 * plugin and agent share one. "controllers-…": of the controllers, which have an account of their own.
 */
export type RoleDatastore = "etcd" | "kubernetes" | "node-kubernetes" | "controllers-etcd" | "controllers-kubernetes";

const NAMESPACE = "kube-system";

function rulesFor(datastore: RoleDatastore): readonly Rule[] {
  switch (datastore) {
    case "etcd":
      return hostAgentRules(datastore);
    case "kubernetes":
      return pluginRules(datastore);
    case "node-kubernetes":
      return NODE_AGENT_RULES;
    case "controllers-etcd":
      return controllersRules("etcd");
    case "controllers-kubernetes":
      return controllersRules("kubernetes");
  }
}

/** What is permitted in the own namespace alone. */
function namespacedRules(datastore: RoleDatastore): readonly (readonly Rule[])[] {
  if (isOfControllers(datastore)) return [[HOLD_LEASE]];
  return datastore === "kubernetes" ? [] : [[READ_PASSWORDS]];
}

function isOfControllers(datastore: RoleDatastore): boolean {
  return datastore.startsWith("controllers-");
}

/** `vendor-etcd`: the name of the role, and of its file. */
export function roleName(datastore: RoleDatastore, { product }: Identity): string {
  return `${product}-${datastore}`;
}

/** One verb on one resource. */
export interface Permission {
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
}

export function permissionsOf(datastore: RoleDatastore): readonly Permission[] {
  return rulesFor(datastore).flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => ({ group, resource, verb })))),
  );
}

/** The role with these permissions alone. */
export function roleObject(datastore: RoleDatastore, names: Identity, permissions: readonly Permission[]): object {
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: roleName(datastore, names) },
    rules: permissions.map(({ group, resource, verb }) => ({
      apiGroups: [group],
      resources: [resource],
      verbs: [verb],
    })),
  };
}

const TITLES: Readonly<Record<RoleDatastore, string>> = {
  etcd: "What plugin and node agent may do on the Kubernetes API if they share an account and their datastore is etcd: read, nothing else; the node agent also reads passwords of BGP.",
  kubernetes:
    "What the plugin may do on the Kubernetes API if that is its datastore, and it shares an account with the node agent.",
  "node-kubernetes":
    "What the node agent may do in addition, if the Kubernetes API is the datastore: read policies, nodes and blocks, and record its release and its addresses.",
  "controllers-etcd": "What the controllers may do on the Kubernetes API if their datastore is etcd.",
  "controllers-kubernetes": "What the controllers may do on the Kubernetes API if that is their datastore.",
};

/** The account, the role, and the binding of both, as `kubectl apply` takes them. */
export function roleManifest(datastore: RoleDatastore, names: Identity): string {
  const name = roleName(datastore, names);
  const account = { name: isOfControllers(datastore) ? names.controllers : names.product, namespace: NAMESPACE };
  const objects = [
    ...(datastore === "node-kubernetes" ? [] : [accountObject(account)]),
    ...clusterRoleObjects(name, rulesFor(datastore), account),
    ...namespacedRules(datastore).flatMap((rules) =>
      namespacedRoleObjects({ name, namespace: NAMESPACE }, rules, account),
    ),
  ];
  return manifest(TITLES[datastore], objects);
}

/** `vendor-host-accounts-etcd`: the name of the file. */
export function hostAccountsName(datastore: RuleDatastore, { product }: Identity): string {
  return `${product}-host-accounts-${datastore}`;
}

/** Roles have other names than those of an installation in pods, whose accounts may be in another namespace. */
export function hostAccountsManifest(datastore: RuleDatastore, { product, nodeAgent }: Identity): string {
  const plugin = { name: PLUGIN_ACCOUNT, namespace: NAMESPACE };
  const agent = { name: nodeAgent, namespace: NAMESPACE };
  const agentRole = `${product}-host-agent`;
  return manifest(
    `What the plugin and the node agent of hosts may do on the Kubernetes API if the datastore is ${datastore === "etcd" ? "etcd" : "that API"}.`,
    [
      accountObject(plugin),
      ...clusterRoleObjects(`${product}-host-plugin`, pluginRules(datastore), plugin),
      accountObject(agent),
      ...clusterRoleObjects(agentRole, hostAgentRules(datastore), agent),
      ...namespacedRoleObjects({ name: agentRole, namespace: NAMESPACE }, hostAgentNamespaceRules(), agent),
    ],
  );
}

function manifest(title: string, objects: readonly object[]): string {
  return `# ${title}\n# Generated from src/release/roles; see docs/kubernetes-access.md.\n${objects.map(formatYaml).join("---\n")}`;
}
