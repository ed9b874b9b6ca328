/**
 * What each part of the product may do on the orchestrator's API: every permission that it uses, and no other. The roles
 * of all ways of installation are made from this table; test/kube/roles.test.ts takes the permissions away one by one.
 */
import { FLOWS_API, FORMER_API, identity, PRODUCT_API } from "../../identity.ts";
import { FLOWS, FLOWS_API_SERVICE } from "../workloads/names.ts";

export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** Of something that is not a resource. */
export interface PathRule {
  readonly nonResourceURLs: readonly string[];
  readonly verbs: readonly string[];
}

export type RuleDatastore = "etcd" | "kubernetes";

/** `vendor-cni-plugin`: the account of the plugin in a cluster, whose tokens the node agent requests. */
export const PLUGIN_ACCOUNT = `${identity.product}-cni-plugin`;

const CORE = "";
/** Its definition is not one of this product. */
const CLUSTER_POLICY_GROUP = "policy.networking.k8s.io";

const READ_FACTS: Rule = { apiGroups: [CORE], resources: ["pods", "namespaces", "nodes"], verbs: ["get"] };

const STORE: readonly Rule[] = [
  // GC looks for the pods of its node.
  { apiGroups: [CORE], resources: ["pods"], verbs: ["list"] },
  // The addresses of a pod are recorded in annotations of its status.
  { apiGroups: [CORE], resources: ["pods/status"], verbs: ["patch"] },
  // Whether the datastore is locked.
  { apiGroups: [PRODUCT_API.group], resources: ["clusterinformations"], verbs: ["get"] },
  // The node agent lists and watches what every assignment reads.
  { apiGroups: [PRODUCT_API.group], resources: ["ipamconfigurations"], verbs: ["get", "list", "watch"] },
  // The first block of a pool adds a finalizer to the pool.
  { apiGroups: [PRODUCT_API.group], resources: ["ippools"], verbs: ["get", "list", "watch", "patch"] },
  { apiGroups: [PRODUCT_API.group], resources: ["ipreservations"], verbs: ["list", "watch"] },
  // Only of pods that name a list.
  { apiGroups: [PRODUCT_API.group], resources: ["ipaddresslists"], verbs: ["get"] },
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
  { apiGroups: [CLUSTER_POLICY_GROUP], resources: ["clusternetworkpolicies"], verbs: ["list", "watch"] },
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

/** The kinds of `STAGED_KINDS`: only flows say what they would decide. */
const FOLLOW_STAGED: Rule = {
  apiGroups: [PRODUCT_API.group],
  resources: ["stagednetworkpolicies", "stagedglobalnetworkpolicies", "stagedkubernetesnetworkpolicies"],
  verbs: ["list", "watch"],
};

/** Of policies that are not carried out, and of tunnels that do not carry everything. */
const REPORT_FINDINGS: Rule = { apiGroups: [CORE], resources: ["events"], verbs: ["create"] };

/** The kinds of `ROUTED_BLOCK_KINDS`, in addition to what the plugin's role has; those of `ROUTING_KINDS` are there and below. */
const FOLLOW_BLOCKS: Rule = { apiGroups: [PRODUCT_API.group], resources: ["ipamblocks"], verbs: ["watch"] };

/** The kinds of `BGP_KINDS`. */
const FOLLOW_BGP: Rule = {
  apiGroups: [PRODUCT_API.group],
  resources: ["bgpconfigurations", "bgppeers", "bgpfilters"],
  verbs: ["list", "watch"],
};

/** What it announces of Services: `SERVICE_RECORDS`. With the API as the datastore, policies need EndpointSlices too. */
const FOLLOW_SERVICES: readonly Rule[] = [
  { apiGroups: [CORE], resources: ["services"], verbs: ["list", "watch"] },
  { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list", "watch"] },
];

/** Its release and its addresses on its Node; its release on ClusterInformation when all nodes have it. */
const RECORD_NODE: readonly Rule[] = [
  { apiGroups: [CORE], resources: ["nodes"], verbs: ["list", "watch"] },
  { apiGroups: [CORE], resources: ["nodes/status"], verbs: ["patch"] },
  { apiGroups: [PRODUCT_API.group], resources: ["clusterinformations"], verbs: ["update"] },
];

/** Before a leaked address or a node is given up, pod and node are asked for again. */
const FOLLOW_CLUSTER: Rule = { apiGroups: [CORE], resources: ["pods", "nodes"], verbs: ["get", "list", "watch"] };

/**
 * Whether the owner of addresses that wait for a pod still exists, and how many pods it has. The UID of the namespace
 * kube-system tells whether the datastore belongs to this cluster.
 */
const READ_OWNERS: readonly Rule[] = [
  { apiGroups: ["apps"], resources: ["statefulsets"], verbs: ["get", "list"] },
  { apiGroups: ["kubevirt.io"], resources: ["virtualmachines", "virtualmachineinstances"], verbs: ["get", "list"] },
  { apiGroups: [CORE], resources: ["namespaces"], verbs: ["get", "list"] },
];

/** Copied with etcd; their statuses are written with any datastore. */
const FOLLOW_CLUSTER_POLICIES: readonly Rule[] = [
  { apiGroups: [CLUSTER_POLICY_GROUP], resources: ["clusternetworkpolicies"], verbs: ["get", "list", "watch"] },
  { apiGroups: [CLUSTER_POLICY_GROUP], resources: ["clusternetworkpolicies/status"], verbs: ["patch"] },
];

/** Before a copy is deleted, its object is asked for again. */
const FOLLOW_COPIED: readonly Rule[] = [
  { apiGroups: [CORE], resources: ["namespaces", "serviceaccounts"], verbs: ["get", "list", "watch"] },
  { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], verbs: ["get", "list", "watch"] },
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
  // A block that is given back while its addresses rest counts as borrowed by its node.
  { apiGroups: [PRODUCT_API.group], resources: ["blockaffinities"], verbs: ["create"] },
  { apiGroups: [PRODUCT_API.group], resources: ["ipamhandles"], verbs: ["get", "list", "update", "delete"] },
  // Whether the datastore is locked, and to which cluster it belongs.
  { apiGroups: [PRODUCT_API.group], resources: ["clusterinformations"], verbs: ["get", "update"] },
];

/** In the namespace of the controllers alone. */
export const HOLD_LEASE: Rule = {
  apiGroups: ["coordination.k8s.io"],
  resources: ["leases"],
  verbs: ["get", "create", "update"],
};

/** In the namespace of the agent alone. A Secret of another name needs a Role of its own. */
export const READ_PASSWORDS: Rule = {
  apiGroups: [CORE],
  resources: ["secrets"],
  verbs: ["get"],
  resourceNames: ["bgp-passwords"],
};

/** In the namespace of the agent alone: short-lived tokens of these accounts. */
function requestTokens(...accounts: readonly string[]): Rule {
  return { apiGroups: [CORE], resources: ["serviceaccounts/token"], verbs: ["create"], resourceNames: accounts };
}

/** The node agent clears the condition NetworkUnavailable of its Node. */
const REPORT_NETWORK: Rule = { apiGroups: [CORE], resources: ["nodes/status"], verbs: ["patch"] };

/** The installation of the first node initializes the datastore. */
const INITIALIZE: Rule = { apiGroups: [PRODUCT_API.group], resources: ["clusterinformations"], verbs: ["create"] };

/** Whether the resources of an earlier release still have to move. */
const SEE_FORMER_STORAGE: Rule = {
  apiGroups: [FORMER_API.group],
  resources: ["clusterinformations"],
  verbs: ["get"],
  resourceNames: ["default"],
};

/** Without the operator, the installation of the first node also creates what the manifest configures. */
export const CREATE_CONFIGURED: readonly Rule[] = [
  { apiGroups: [PRODUCT_API.group], resources: ["ippools"], verbs: ["create"] },
  { apiGroups: [PRODUCT_API.group], resources: ["nodeagentconfigurations"], verbs: ["get", "create"] },
];

/** With etcd and another networking plugin. */
export const FOLLOW_PODS: Rule = { apiGroups: [CORE], resources: ["pods"], verbs: ["list", "watch"] };

export function pluginRules(datastore: RuleDatastore): readonly Rule[] {
  return datastore === "etcd" ? [READ_FACTS] : [READ_FACTS, ...STORE];
}

/** What the node agent needs in addition to the plugin's rules if the Kubernetes API is the datastore. */
export const NODE_AGENT_RULES: readonly Rule[] = [
  ...FOLLOW_POLICY,
  FOLLOW_STAGED,
  REPORT_FINDINGS,
  FOLLOW_BLOCKS,
  FOLLOW_BGP,
  ...FOLLOW_SERVICES,
  ...RECORD_NODE,
];

/** Of a node agent in a pod, which has an account of its own. */
export function nodeRules(datastore: RuleDatastore): readonly Rule[] {
  const rules = pluginRules(datastore);
  return datastore === "etcd"
    ? [...rules, ...FOLLOW_SERVICES, REPORT_NETWORK]
    : [...rules, ...NODE_AGENT_RULES, INITIALIZE, SEE_FORMER_STORAGE];
}

export function nodeNamespaceRules(): readonly Rule[] {
  return [READ_PASSWORDS, requestTokens(PLUGIN_ACCOUNT)];
}

/** Of a node agent on a host, which has an account of its own, and initializes nothing. */
export function hostAgentRules(datastore: RuleDatastore): readonly Rule[] {
  const rules = pluginRules(datastore);
  return datastore === "etcd" ? [...rules, ...FOLLOW_SERVICES] : [...rules, ...NODE_AGENT_RULES];
}

/** It also renews its own token, which the kubelet does for a pod. */
export function hostAgentNamespaceRules(): readonly Rule[] {
  return [READ_PASSWORDS, requestTokens(PLUGIN_ACCOUNT, identity.nodeAgent)];
}

export function controllersRules(datastore: RuleDatastore): readonly Rule[] {
  return datastore === "etcd"
    ? [FOLLOW_CLUSTER, ...READ_OWNERS, ...FOLLOW_CLUSTER_POLICIES, ...FOLLOW_COPIED]
    : [FOLLOW_CLUSTER, ...READ_OWNERS, ...FOLLOW_CLUSTER_POLICIES, ...KEEP_RECORDS];
}

/** Who asks for flows, what the caller may list, and to which node an agent's token is bound. */
export const REVIEW: readonly Rule[] = [
  { apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"], verbs: ["create"] },
  { apiGroups: ["authorization.k8s.io"], resources: ["subjectaccessreviews"], verbs: ["create"] },
  // Of which a caller may list the pods.
  { apiGroups: [CORE], resources: ["namespaces"], verbs: ["list"] },
];

/** How API servers identify themselves, and what the APIService trusts. */
export const SERVE_FLOWS: readonly Rule[] = [
  {
    ...{ apiGroups: [CORE], resources: ["configmaps"], verbs: ["get"] },
    resourceNames: ["extension-apiserver-authentication"],
  },
  {
    ...{ apiGroups: ["apiregistration.k8s.io"], resources: ["apiservices"], verbs: ["get", "patch"] },
    resourceNames: [FLOWS_API_SERVICE],
  },
];

/** Of the controllers while flows are on, in addition to `controllersRules()`. */
export function flowControllersRules(): readonly Rule[] {
  return [...REVIEW, ...SERVE_FLOWS];
}

/**
 * Of the controllers, in their namespace alone: a certificate, which is deleted with the Service. `name`: of the Service, the
 * Secret and the ConfigMap.
 */
export function certificateRules(name: string): readonly Rule[] {
  return [
    { apiGroups: [CORE], resources: ["services"], verbs: ["get"], resourceNames: [name] },
    { apiGroups: [CORE], resources: ["secrets"], verbs: ["get", "create", "patch"], resourceNames: [name] },
    { apiGroups: [CORE], resources: ["configmaps"], verbs: ["create", "patch"], resourceNames: [name] },
  ];
}

/** Of node agents while flows are on, in the namespace of the controllers alone: where those are, and tokens for them. */
export function flowAgentNamespaceRules(): readonly Rule[] {
  return [
    { apiGroups: [CORE], resources: ["configmaps"], verbs: ["get"], resourceNames: [FLOWS] },
    { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list", "watch"] },
    requestTokens(identity.nodeAgent),
  ];
}

/** Whoever has it reads flows with an end that they may list. */
export const FLOW_READER_RULES: readonly Rule[] = [
  { apiGroups: [FLOWS_API.group], resources: ["flows", "rollups", "explanation"], verbs: ["get", "list", "watch"] },
];
