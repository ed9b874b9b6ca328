/**
 * What the operator may do: what it needs itself, and exactly what it grants to others, because the API server refuses to
 * let anybody grant more than they have. Changes of objects are limited to the names that it renders; this works because
 * it creates by server-side apply, whose requests name the object.
 */
import { identity, OPERATOR_API, PRODUCT_API } from "../../identity.ts";
import { ADMISSION_GROUPS } from "../../model/installation/admission.ts";
import { ADDRESS_LIST } from "../admission/address-policies.ts";
import { USERS_OF_ANNOTATIONS } from "../admission/annotation-users.ts";
import { flowTokenPolicy } from "../admission/node-policies.ts";
import { listFollower, policiesOf } from "../admission/policies.ts";
import { ADMISSION_GROUP } from "../admission/policy-objects.ts";
import {
  CONSOLE,
  FLOW_AGENTS,
  FLOW_READER,
  FLOWS,
  FLOWS_API_SERVICE,
  NETWORK_CONFIG_MAP,
  UNINSTALL,
} from "../workloads/names.ts";
import { RBAC_GROUP } from "./role-objects.ts";
import {
  controllersRules,
  FLOW_READER_RULES,
  flowAgentNamespaceRules,
  HOLD_LEASE,
  nodeNamespaceRules,
  nodeRules,
  type PathRule,
  PLUGIN_ACCOUNT,
  pluginRules,
  REVIEW,
  type Rule,
  SERVE_FLOWS,
} from "./rules.ts";

export const OPERATOR_ACCOUNT = { name: identity.operator, namespace: identity.operator } as const;

/** Bound in the namespace of the components only, by the operator itself: Secrets, and what it grants there. */
export const OPERATOR_SECRETS_ROLE = `${identity.operator}-secrets`;

const CORE = "";
const COMPONENTS = [identity.nodeAgent, PLUGIN_ACCOUNT, identity.controllers];
const NAMESPACED_ROLES = [identity.nodeAgent, identity.controllers, FLOWS, FLOW_AGENTS, CONSOLE];
/** A policy and its binding have the same name. */
const ADMISSION_POLICIES = [
  ...new Set(
    [...listFollower(), ...ADMISSION_GROUPS.flatMap(policiesOf), ...flowTokenPolicy()].map(
      ({ metadata }) => metadata.name,
    ),
  ),
];
const STATUSES = `${identity.product}statuses`;

/** Each kind that is rendered, with the names of its objects. */
const RENDERED: readonly (readonly [group: string, resource: string, names: readonly string[]])[] = [
  [CORE, "namespaces", [identity.systemNamespace]],
  [CORE, "serviceaccounts", [...COMPONENTS, CONSOLE]],
  [CORE, "configmaps", [NETWORK_CONFIG_MAP, ADDRESS_LIST.name, FLOWS, CONSOLE]],
  [CORE, "services", [FLOWS, CONSOLE]],
  ["apiregistration.k8s.io", "apiservices", [FLOWS_API_SERVICE]],
  ["apps", "daemonsets", [identity.nodeAgent, UNINSTALL]],
  ["apps", "deployments", [identity.controllers, CONSOLE]],
  ["policy", "poddisruptionbudgets", [identity.controllers]],
  [RBAC_GROUP, "clusterroles", [...COMPONENTS, FLOWS, FLOW_READER]],
  [RBAC_GROUP, "clusterrolebindings", [...COMPONENTS, FLOWS]],
  [RBAC_GROUP, "roles", NAMESPACED_ROLES],
  [RBAC_GROUP, "rolebindings", [...NAMESPACED_ROLES, OPERATOR_SECRETS_ROLE]],
  [ADMISSION_GROUP, "validatingadmissionpolicies", ADMISSION_POLICIES],
  [ADMISSION_GROUP, "validatingadmissionpolicybindings", ADMISSION_POLICIES],
  ["storage.k8s.io", "csidrivers", [identity.csiDriver]],
];

const CHANGE_RENDERED: readonly Rule[] = RENDERED.map(([group, resource, resourceNames]) => ({
  apiGroups: [group],
  resources: [resource],
  verbs: ["create", "patch", "delete"],
  resourceNames,
}));

const FOLLOW: readonly Rule[] = [
  ...RENDERED.map(([group, resource]) => rule(group, [resource], ["get", "list", "watch"])),
  rule(CORE, ["nodes", "pods"], ["list", "watch"]),
  // Before the first policy counts: who chooses addresses already.
  ...USERS_OF_ANNOTATIONS.map(({ group, resource }) => rule(group, [resource], ["list"])),
];

const OWN: readonly Rule[] = [
  rule(OPERATOR_API.group, ["installations"], ["list", "watch", "patch"]),
  rule(OPERATOR_API.group, ["installations/status"], ["patch"]),
  rule(OPERATOR_API.group, [STATUSES], ["get", "list", "watch", "create", "delete"]),
  rule(OPERATOR_API.group, [`${STATUSES}/status`], ["patch"]),
  rule(PRODUCT_API.group, ["ippools"], ["get", "list", "watch", "create", "update"]),
  rule(PRODUCT_API.group, ["nodeagentconfigurations"], ["get", "list", "watch", "create", "update", "delete"]),
  rule(PRODUCT_API.group, ["clusterinformations"], ["list", "watch"]),
  rule(CORE, ["events"], ["create"]),
];

const BIND_SECRETS: Rule = {
  apiGroups: [RBAC_GROUP],
  resources: ["clusterroles"],
  verbs: ["bind"],
  resourceNames: [OPERATOR_SECRETS_ROLE],
};

const GRANTED: readonly Rule[] = [
  ...(["kubernetes", "etcd"] as const).flatMap((datastore) => [
    ...pluginRules(datastore),
    ...nodeRules(datastore),
    ...controllersRules(datastore),
  ]),
  ...REVIEW,
  ...FLOW_READER_RULES,
];

/** In the whole cluster. */
export function operatorRules(): readonly (Rule | PathRule)[] {
  return [
    ...CHANGE_RENDERED,
    BIND_SECRETS,
    ...SERVE_FLOWS,
    ...combinedRules([...FOLLOW, ...OWN, ...GRANTED]),
    READ_VERSION,
  ];
}

/** By default everybody may read it, but an administrator may have taken that away. */
const READ_VERSION: PathRule = { nonResourceURLs: ["/version"], verbs: ["get"] };

/** Those of them that it does not only grant. */
export function operatorOwnRules(): readonly Rule[] {
  return [...CHANGE_RENDERED, ...FOLLOW, ...OWN];
}

/** In the namespace of the components. */
export function operatorSecretsRules(): readonly Rule[] {
  return [
    rule(CORE, ["secrets"], ["get", "list", "create", "patch", "delete"]),
    ...nodeNamespaceRules().filter(({ resources }) => !resources.includes("secrets")),
    ...flowAgentNamespaceRules().filter(({ resources }) => resources.includes("serviceaccounts/token")),
    HOLD_LEASE,
  ];
}

/** In its own namespace: its Lease, the Secrets that it copies, and the address of the API server. */
export function operatorNamespaceRules(): readonly Rule[] {
  return [HOLD_LEASE, rule(CORE, ["secrets", "configmaps"], ["list", "watch"])];
}

/** In `kube-system`: what kubeadm recorded about the addresses of pods. */
export function platformRules(): readonly Rule[] {
  return [{ ...rule(CORE, ["configmaps"], ["list", "watch"]), resourceNames: ["kubeadm-config"] }];
}

function rule(group: string, resources: readonly string[], verbs: readonly string[]): Rule {
  return { apiGroups: [group], resources, verbs };
}

/**
 * Rules that permit the same together, each resource once: resources of a group with the same verbs share a rule. `rules` must
 * not be limited to names of objects.
 */
function combinedRules(rules: readonly Rule[]): readonly Rule[] {
  const verbs = new Map<string, Set<string>>();
  for (const { apiGroups, resources, verbs: allowed } of rules) {
    for (const place of apiGroups.flatMap((group) => resources.map((resource) => `${group} ${resource}`))) {
      verbs.set(place, new Set([...(verbs.get(place) ?? []), ...allowed]));
    }
  }
  const groups = Map.groupBy(verbs.keys(), (place) => `${place.split(" ")[0]} ${sorted(verbs.get(place)).join(",")}`);
  return [...groups].map(([key, places]) => {
    const [group = "", list = ""] = key.split(" ");
    return {
      apiGroups: [group],
      resources: places.map((place) => place.slice(group.length + 1)).toSorted(),
      verbs: list.split(","),
    };
  });
}

const ORDER = ["get", "list", "watch", "create", "update", "patch", "delete"];

function sorted(verbs: ReadonlySet<string> = new Set()): readonly string[] {
  return [...verbs].toSorted((one, other) => ORDER.indexOf(one) - ORDER.indexOf(other));
}
