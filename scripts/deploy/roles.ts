/**
 * The roles of the plugin on the orchestrator's API, one for each datastore, and that of
 * the node agent for policy: every permission that they use, and no other. `deploy/rbac/` is generated from this
 * table; test/kube/roles.test.ts takes the permissions away one by one.
 */
import { formatYaml } from "../../src/admin/yaml.ts";
import { type Identity, PRODUCT_API } from "../../src/identity.ts";

/**
 * "node-kubernetes": what the node agent needs beside the plugin's role, to enforce policy with that datastore. With etcd it
 * needs nothing more. "controllers-…": of the controllers, which have an account of their own.
 */
export type RoleDatastore = "etcd" | "kubernetes" | "node-kubernetes" | "controllers-etcd" | "controllers-kubernetes";

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

const CORE = "";
const NAMESPACE = "kube-system";
const RBAC_GROUP = "rbac.authorization.k8s.io";

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

/** The kinds of `POLICY_KINDS`, as a replica follows them; those of `ROUTING_KINDS` are below, or in the plugin's role. */
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

/** The kinds of `ROUTED_BLOCK_KINDS`, beside what the plugin's role has; those of `ROUTING_KINDS` are there and below. */
const FOLLOW_BLOCKS: Rule = { apiGroups: [PRODUCT_API.group], resources: ["ipamblocks"], verbs: ["watch"] };

/** The kinds of `BGP_KINDS`. */
const FOLLOW_BGP: Rule = {
  apiGroups: [PRODUCT_API.group],
  resources: ["bgpconfigurations", "bgppeers", "bgpfilters"],
  verbs: ["list", "watch"],
};

/** Its release and its addresses on its Node; its release on ClusterInformation when all nodes have it. */
const RECORD_NODE: readonly Rule[] = [
  { apiGroups: [CORE], resources: ["nodes"], verbs: ["list", "watch"] },
  { apiGroups: [CORE], resources: ["nodes/status"], verbs: ["patch"] },
  { apiGroups: [PRODUCT_API.group], resources: ["clusterinformations"], verbs: ["update"] },
];

/** Before a leaked address or a node is given up, pod and node are asked for again. */
const FOLLOW_CLUSTER: Rule = { apiGroups: [CORE], resources: ["pods", "nodes"], verbs: ["get", "list", "watch"] };

const FOLLOW_COPIED: readonly Rule[] = [
  { apiGroups: [CORE], resources: ["namespaces", "serviceaccounts"], verbs: ["list", "watch"] },
  { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], verbs: ["list", "watch"] },
];

const KEEP_RECORDS: readonly Rule[] = [
  {
    apiGroups: [PRODUCT_API.group],
    resources: ["kubecontrollersconfigurations"],
    verbs: ["get", "list", "watch", "create", "update"],
  },
  {
    apiGroups: [PRODUCT_API.group],
    resources: ["hostendpoints"],
    verbs: ["get", "list", "watch", "create", "update", "delete"],
  },
  { apiGroups: [PRODUCT_API.group], resources: ["ippools"], verbs: ["list", "watch"] },
  {
    apiGroups: [PRODUCT_API.group],
    resources: ["ipamblocks", "blockaffinities"],
    verbs: ["get", "list", "watch", "update", "delete"],
  },
  { apiGroups: [PRODUCT_API.group], resources: ["ipamhandles"], verbs: ["get", "update", "delete"] },
];

/** In the namespace of the controllers alone. */
const HOLD_LEASE: Rule = {
  apiGroups: ["coordination.k8s.io"],
  resources: ["leases"],
  verbs: ["get", "create", "update"],
};

/** In the namespace of the agent alone. A Secret of another name needs a Role of its own. */
const READ_PASSWORDS: Rule = {
  apiGroups: [CORE],
  resources: ["secrets"],
  verbs: ["get"],
  resourceNames: ["bgp-passwords"],
};

function rulesFor(datastore: RoleDatastore): readonly Rule[] {
  switch (datastore) {
    case "etcd":
      return [READ_FACTS];
    case "kubernetes":
      return [READ_FACTS, ...STORE];
    case "node-kubernetes":
      return [...FOLLOW_POLICY, FOLLOW_BLOCKS, FOLLOW_BGP, ...RECORD_NODE];
    case "controllers-etcd":
      return [FOLLOW_CLUSTER, ...FOLLOW_COPIED];
    case "controllers-kubernetes":
      return [FOLLOW_CLUSTER, ...KEEP_RECORDS];
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
  etcd: "What the plugin may do on the orchestrator's API if its datastore is etcd: read, nothing else; the node agent also reads passwords of BGP.",
  kubernetes: "What the plugin may do on the orchestrator's API if that is its datastore.",
  "node-kubernetes":
    "What the node agent may do beside, if the orchestrator's API is the datastore: read policies, nodes and blocks, and record its release and its addresses.",
  "controllers-etcd": "What the controllers may do on the orchestrator's API if their datastore is etcd.",
  "controllers-kubernetes": "What the controllers may do on the orchestrator's API if that is their datastore.",
};

/** The account, the role, and the binding of both, as `kubectl apply` takes them. */
export function roleManifest(datastore: RoleDatastore, names: Identity): string {
  const name = roleName(datastore, names);
  const account = isOfControllers(datastore) ? names.controllers : names.product;
  const subjects = [{ kind: "ServiceAccount", name: account, namespace: NAMESPACE }];
  const objects = [
    ...(datastore === "node-kubernetes"
      ? []
      : [{ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: account, namespace: NAMESPACE } }]),
    ...roleObjects("Cluster", { metadata: { name }, rules: rulesFor(datastore), subjects }),
    ...namespacedRules(datastore).flatMap((rules) =>
      roleObjects("", { metadata: { name, namespace: NAMESPACE }, rules, subjects }),
    ),
  ];
  const title = TITLES[datastore];
  return `# ${title}\n# Generated from scripts/deploy/roles.ts; see docs/kubernetes-access.md.\n${objects.map(formatYaml).join("---\n")}`;
}

/** A role and its binding: of the cluster, or of a namespace. */
function roleObjects(
  scope: "Cluster" | "",
  role: {
    readonly metadata: { readonly name: string; readonly namespace?: string };
    readonly rules: readonly Rule[];
    readonly subjects: object;
  },
): readonly object[] {
  const { metadata, rules, subjects } = role;
  const apiVersion = `${RBAC_GROUP}/v1`;
  const roleRef = { apiGroup: RBAC_GROUP, kind: `${scope}Role`, name: metadata.name };
  return [
    { apiVersion, kind: `${scope}Role`, metadata, rules },
    { apiVersion, kind: `${scope}RoleBinding`, metadata, roleRef, subjects },
  ];
}
