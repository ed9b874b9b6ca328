/** The objects of earlier releases that this one does not have: an explicit list, nothing is found by labels. Pure. */
import { identity } from "../identity.ts";
import {
  FORMER_API_SERVER,
  FORMER_CANAL,
  FORMER_CONTROLLERS,
  FORMER_NODE_DAEMON_SET,
  FORMER_TYPHA,
} from "./former-names.ts";

const { product } = identity;
const RBAC = "/apis/rbac.authorization.k8s.io/v1";
/** The driver of the volumes of former sidecars. */
export const FORMER_CSI = "csi-node-driver";
/** Other products use them too: see shared-names.ts. */
export const SHARED_NAMES: readonly string[] = [FORMER_CSI, FORMER_CANAL.daemonSet, FORMER_CANAL.etcdDaemonSet];
export const CLUSTER_ROLE_BINDINGS = `${RBAC}/clusterrolebindings`;

export interface FormerObject {
  /** `Deployment kube-system/vendor-typha` */
  readonly what: string;
  readonly path: string;
}

/** In the order of deletion: pods before the accounts that they use. `namespace`: where the node agents run. */
export function formerObjects(namespace: string): readonly FormerObject[] {
  const { namespace: apiNamespace, deployment, service } = FORMER_API_SERVER;
  const workloads = [FORMER_CONTROLLERS, FORMER_TYPHA];
  return [
    ...workloads.map((name) => within("Deployment", "/apis/apps/v1", namespace, name)),
    within("DaemonSet", "/apis/apps/v1", namespace, FORMER_CSI),
    within("Deployment", "/apis/apps/v1", apiNamespace, deployment),
    within("Service", "/api/v1", namespace, FORMER_TYPHA),
    within("Service", "/api/v1", apiNamespace, service),
    ...workloads.map((name) => within("PodDisruptionBudget", "/apis/policy/v1", namespace, name)),
    within("PodDisruptionBudget", "/apis/policy/v1", apiNamespace, deployment),
    ...BINDINGS.map((name) => global("ClusterRoleBinding", RBAC, name)),
    within("RoleBinding", RBAC, "kube-system", `${deployment}-auth-reader`),
    ...ROLES.map((name) => global("ClusterRole", RBAC, name)),
    ...[...workloads, FORMER_CSI, FORMER_CANAL.daemonSet, FORMER_CANAL.etcdDaemonSet].map((name) =>
      within("ServiceAccount", "/api/v1", namespace, name),
    ),
    within("ServiceAccount", "/api/v1", apiNamespace, deployment),
    ...SECURITY_POLICIES.map((name) => global("PodSecurityPolicy", "/apis/policy/v1beta1", name)),
  ];
}

const API_ROLES = [
  `${product}-crds`,
  `${product}-webhook-reader`,
  `${product}-extension-apiserver-auth-access`,
  FORMER_API_SERVER.deployment,
];
const ROLES = [FORMER_CONTROLLERS, FORMER_TYPHA, FORMER_CSI, FORMER_CANAL.daemonSet, ...API_ROLES];
const BINDINGS = [
  FORMER_CONTROLLERS,
  FORMER_TYPHA,
  FORMER_CSI,
  FORMER_CANAL.daemonSet,
  `${FORMER_CANAL.daemonSet}-${product}`,
  `${FORMER_API_SERVER.deployment}-access-crds`,
  `${FORMER_API_SERVER.deployment}-delegate-auth`,
  `${FORMER_API_SERVER.deployment}-webhook-reader`,
  `${product}-extension-apiserver-auth-access`,
];
const SECURITY_POLICIES = [
  FORMER_NODE_DAEMON_SET,
  FORMER_TYPHA,
  FORMER_CONTROLLERS,
  FORMER_API_SERVER.deployment,
  FORMER_CSI,
];

const PLURALS = {
  Deployment: "deployments",
  DaemonSet: "daemonsets",
  Service: "services",
  PodDisruptionBudget: "poddisruptionbudgets",
  ServiceAccount: "serviceaccounts",
  RoleBinding: "rolebindings",
  ClusterRole: "clusterroles",
  ClusterRoleBinding: "clusterrolebindings",
  PodSecurityPolicy: "podsecuritypolicies",
} as const;

function within(kind: keyof typeof PLURALS, group: string, namespace: string, name: string): FormerObject {
  return { what: `${kind} ${namespace}/${name}`, path: `${group}/namespaces/${namespace}/${PLURALS[kind]}/${name}` };
}

function global(kind: keyof typeof PLURALS, group: string, name: string): FormerObject {
  return { what: `${kind} ${name}`, path: `${group}/${PLURALS[kind]}/${name}` };
}

/** Settings that pods of earlier releases read. Others of the same ConfigMaps are still used. */
export const FORMER_SETTINGS = ["typha_service_name", `${product}_backend`, "veth_mtu", "cni_network_config"];
