/**
 * The roles of the plugin on the orchestrator's API, one for each datastore, and that of
 * the node agent for policy: every permission that they use, and no other. `deploy/rbac/` is generated from this
 * table; test/kube/roles.test.ts takes the permissions away one by one.
 */
import { formatYaml } from "../../src/admin/yaml.ts";
import { type Identity, PRODUCT_API } from "../../src/identity.ts";

/** "node-kubernetes": what the node agent needs beside the plugin's role, to enforce policy with that datastore. With etcd it needs nothing more. */
export type RoleDatastore = "etcd" | "kubernetes" | "node-kubernetes";

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

const CORE = "";
const NAMESPACE = "kube-system";

const READ_FACTS: Rule = { apiGroups: [CORE], resources: ["pods", "namespaces", "nodes"], verbs: ["get"] };

const STORE: readonly Rule[] = [
  // GC looks for the pods of its node.
  { apiGroups: [CORE], resources: ["pods"], verbs: ["list"] },
  // The addresses of a pod are recorded in annotations of its status.
  { apiGroups: [CORE], resources: ["pods/status"], verbs: ["patch"] },
  // The node agent lists and watches what every assignment reads.
  {
    apiGroups: [PRODUCT_API.group],
    resources: ["clusterinformations", "ipamconfigurations"],
    verbs: ["get", "list", "watch"],
  },
  // The first block of a pool adds a finalizer to the pool.
  { apiGroups: [PRODUCT_API.group], resources: ["ippools"], verbs: ["get", "list", "watch", "patch"] },
  { apiGroups: [PRODUCT_API.group], resources: ["ipreservations"], verbs: ["list", "watch"] },
  {
    apiGroups: [PRODUCT_API.group],
    resources: ["ipamblocks", "ipamhandles", "blockaffinities"],
    verbs: ["get", "list", "create", "update", "delete"],
  },
];

/** The kinds of `POLICY_KINDS`, as a replica follows them. */
const FOLLOW_POLICY: readonly Rule[] = [
  { apiGroups: [CORE], resources: ["pods", "namespaces", "serviceaccounts"], verbs: ["list", "watch"] },
  { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], verbs: ["list", "watch"] },
  { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list", "watch"] },
  {
    apiGroups: [PRODUCT_API.group],
    resources: [
      "networkpolicies",
      "globalnetworkpolicies",
      "networksets",
      "globalnetworksets",
      "tiers",
      "hostendpoints",
      "nodeagentconfigurations",
    ],
    verbs: ["list", "watch"],
  },
];

/** Its release on its Node, and on ClusterInformation when all nodes have it. */
const RECORD_VERSION: readonly Rule[] = [
  { apiGroups: [CORE], resources: ["nodes"], verbs: ["list"] },
  { apiGroups: [CORE], resources: ["nodes/status"], verbs: ["patch"] },
  { apiGroups: [PRODUCT_API.group], resources: ["clusterinformations"], verbs: ["update"] },
];

function rulesFor(datastore: RoleDatastore): readonly Rule[] {
  if (datastore === "node-kubernetes") return [...FOLLOW_POLICY, ...RECORD_VERSION];
  return datastore === "etcd" ? [READ_FACTS] : [READ_FACTS, ...STORE];
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
  etcd: "What the plugin may do on the orchestrator's API if its datastore is etcd: read, nothing else.",
  kubernetes: "What the plugin may do on the orchestrator's API if that is its datastore.",
  "node-kubernetes":
    "What the node agent may do beside, if the orchestrator's API is the datastore: read policies, and record its release.",
};

/** The account, the role, and the binding of both, as `kubectl apply` takes them. */
export function roleManifest(datastore: RoleDatastore, names: Identity): string {
  const name = roleName(datastore, names);
  const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: names.product, namespace: NAMESPACE } };
  const objects = [
    ...(datastore === "node-kubernetes" ? [] : [account]),
    { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name }, rules: rulesFor(datastore) },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
      subjects: [{ kind: "ServiceAccount", name: names.product, namespace: NAMESPACE }],
    },
  ];
  const title = TITLES[datastore];
  return `# ${title}\n# Generated from scripts/deploy/roles.ts; see docs/kubernetes-access.md.\n${objects.map(formatYaml).join("---\n")}`;
}
