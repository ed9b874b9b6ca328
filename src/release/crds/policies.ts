/**
 * NetworkPolicy, GlobalNetworkPolicy, Tier, Profile, NetworkSet and GlobalNetworkSet; their rules are in `policy-rule.ts`. The
 * checks of the model are in `src/model/policy-spec.ts`, `global-network-policy.ts` and `tier.ts`, with the messages.
 */
import { BUILT_IN_TIERS } from "../../model/built-in-tiers.ts";
import { CLUSTER_POLICY } from "../../model/cluster-network-policy.ts";
import { HOST_OPTION_MESSAGES } from "../../model/global-network-policy.ts";
import { ORCHESTRATOR_POLICY } from "../../model/orchestrator-policy.ts";
import { tierNameMessage } from "../../model/policy-spec.ts";
import { deletionMessage } from "../../model/staged-action.ts";
import { stagedPortField } from "../../model/staged-kubernetes-network-policy.ts";
import { builtInActionMessage, DEFAULT_TIER, orderField } from "../../model/tier.ts";
import { formatted } from "./cel.ts";
import type { CelRule } from "./crd-schema.ts";
import { below, type CheckedFields, type Column, type Descriptions, type ReleasedKinds } from "./kind.ts";
import { RULE_DESCRIPTIONS, RULE_DESCRIPTIONS_WITHOUT_HTTP, rulesOfPolicy } from "./policy-rule.ts";

/** A rule about the name cannot name a field path. */
const POLICY_NAME_RULES: readonly CelRule[] = [
  {
    rule: `self.spec.tier == '${DEFAULT_TIER}' || self.metadata.name.startsWith(self.spec.tier + '.')`,
    message: "metadata.name does not begin with the name of its tier",
    messageExpression: formatted(`metadata.name: "%s" ${tierNameMessage("%s", "%s")}`, [
      "self.metadata.name",
      "self.spec.tier",
      "self.metadata.name",
    ]),
  },
];

/** Of records that are derived from policies of the orchestrator. */
function reservedName(prefix: string, source: string): CelRule {
  return {
    rule: `!self.metadata.name.startsWith('${prefix}')`,
    message: `metadata.name begins with "${prefix}", as those do that are derived from the ${source}; use another name`,
  };
}

const NAMESPACED_NAME_RULES = [
  ...POLICY_NAME_RULES,
  reservedName(ORCHESTRATOR_POLICY, "NetworkPolicies of networking.k8s.io"),
];
const GLOBAL_NAME_RULES = [
  ...POLICY_NAME_RULES,
  reservedName(CLUSTER_POLICY, "ClusterNetworkPolicies of policy.networking.k8s.io"),
];

const HOST_OPTION_RULES: readonly CelRule[] = [
  {
    rule: "!self.doNotTrack || !self.preDNAT",
    fieldPath: ".preDNAT",
    message: HOST_OPTION_MESSAGES.both,
  },
  ...["doNotTrack", "preDNAT"].map((field) => ({
    rule: `!self.${field} || self.applyOnForward`,
    fieldPath: `.${field}`,
    message: HOST_OPTION_MESSAGES.needsForward,
  })),
  {
    rule: "!self.preDNAT || (has(self.types) && self.types.size() > 0 ? !('Egress' in self.types) : !has(self.egress) || self.egress.size() == 0)",
    fieldPath: ".egress",
    message: HOST_OPTION_MESSAGES.egress,
  },
  {
    rule: "!(self.doNotTrack || self.preDNAT) || !has(self.ingress) || self.ingress.all(rule, !has(rule.http))",
    fieldPath: ".ingress",
    message: `has a rule with http, which ${HOST_OPTION_MESSAGES.http}`,
  },
];

const DELETES = "self.stagedAction == 'Delete'";

function deletionRules(fields: readonly string[], allowed: readonly string[]): readonly CelRule[] {
  return fields.map((field) => ({
    rule: `!(${DELETES}) || !has(self.${field})`,
    fieldPath: `.${field}`,
    message: deletionMessage(allowed),
  }));
}

const RULE_LISTS = ["ingress", "egress"] as const;
const POLICY_DELETION = deletionRules(
  ["order", "selector", "serviceAccountSelector", "types", ...RULE_LISTS],
  ["tier"],
);
const GLOBAL_DELETION: readonly CelRule[] = [
  ...POLICY_DELETION,
  ...deletionRules(["namespaceSelector"], ["tier"]),
  ...(["doNotTrack", "preDNAT", "applyOnForward"] as const).map((field) => ({
    rule: `!(${DELETES}) || !self.${field}`,
    fieldPath: `.${field}`,
    message: deletionMessage(["tier"]),
  })),
];
const KUBERNETES_DELETION: readonly CelRule[] = [
  {
    // Other programs write what is empty.
    rule: `!(${DELETES}) || !has(self.podSelector) || (!has(self.podSelector.matchLabels) && !has(self.podSelector.matchExpressions))`,
    fieldPath: ".podSelector",
    message: deletionMessage([]),
  },
  ...deletionRules(["policyTypes", ...RULE_LISTS], []),
];

const TIER_RULES: readonly CelRule[] = Array.from(BUILT_IN_TIERS, ([name, { defaultAction }]) => ({
  rule: `self.metadata.name != '${name}' || self.spec.defaultAction == '${defaultAction}'`,
  message: `spec.defaultAction: ${builtInActionMessage(name)}`,
}));

const POLICY_COLUMNS: readonly Column[] = [
  { name: "Tier", path: ".spec.tier" },
  { name: "Order", path: ".spec.order", type: "number" },
  { name: "Selector", path: ".spec.selector" },
  { name: "Types", path: ".spec.types", isWide: true },
];

const POLICY: Descriptions = {
  spec: "The policy's endpoints and rules",
  "spec.tier": "Tier that the policy is evaluated in; in any other than default, its name must begin with TIER.",
  "spec.order": "Position in the tier: lower numbers are evaluated first, policies without one last, then by name",
  "spec.selector": "Selector of the endpoints that the policy applies to (default: all)",
  "spec.serviceAccountSelector": "Selector of the service accounts whose endpoints the policy applies to",
  "spec.types":
    "Directions that the policy isolates: what its rules do not allow is denied (default: those that it has rules for, or Ingress)",
  ...below("spec.ingress", "Rules for packets to the endpoints, in order", RULE_DESCRIPTIONS),
  ...below("spec.egress", "Rules for packets from the endpoints, in order", RULE_DESCRIPTIONS_WITHOUT_HTTP),
};

const ACTION = "Set: as if the enforced policy of the same name were this one; Delete: as if it were deleted";

const STAGED_COLUMNS: readonly Column[] = [{ name: "Action", path: ".spec.stagedAction" }, ...POLICY_COLUMNS];

const GLOBAL_POLICY: Descriptions = {
  ...POLICY,
  "spec.namespaceSelector": "Selector of the namespaces whose endpoints the policy applies to",
  "spec.doNotTrack":
    "Evaluate the rules at host endpoints before connection tracking, which allowed packets skip; needs applyOnForward",
  "spec.preDNAT": "Evaluate the rules at host endpoints before destinations are translated; needs applyOnForward",
  "spec.applyOnForward": "Also apply the rules to packets that a host endpoint forwards",
};

const LABEL_SELECTOR: Descriptions = {
  matchLabels: "Labels with these values",
  matchExpressions: "Conditions on labels, all of which must be met",
  "matchExpressions.key": "Name of the label",
  "matchExpressions.operator": "How the label and the values are compared",
  "matchExpressions.values": "Values of the label, for In and NotIn",
};

const KUBERNETES_PORTS: Descriptions = {
  protocol: "Protocol of the ports (default: TCP)",
  port: "Number of the port, or its name in the pod; absent: all ports",
  endPort: "Last port of a range that begins with port",
};

const KUBERNETES_PEER: Descriptions = {
  ...below("podSelector", "Pods that have these labels", LABEL_SELECTOR),
  ...below("namespaceSelector", "Namespaces that have these labels (default: that of the policy)", LABEL_SELECTOR),
  ipBlock: "Addresses, instead of pods",
  "ipBlock.cidr": "CIDR of the addresses",
  "ipBlock.except": "CIDRs inside it that do not match",
};

function kubernetesRules(peers: "from" | "to", whose: string): Descriptions {
  return {
    ...below("ports", "Ports that are allowed (default: all)", KUBERNETES_PORTS),
    ...below(peers, `${whose} that are allowed (default: all)`, KUBERNETES_PEER),
  };
}

const NETWORK_SET: Descriptions = {
  spec: "The addresses",
  "spec.nets": "Addresses or CIDRs; rules select them by the labels of the resource",
};

export const POLICY_KINDS: ReleasedKinds = {
  NetworkPolicy: {
    columns: POLICY_COLUMNS,
    rules: {
      "": NAMESPACED_NAME_RULES,
      ...rulesOfPolicy("namespaced"),
    },
    descriptions: {
      "": "Rules for the endpoints of one namespace",
      ...POLICY,
    },
  },
  GlobalNetworkPolicy: {
    columns: POLICY_COLUMNS,
    rules: {
      "": GLOBAL_NAME_RULES,
      spec: HOST_OPTION_RULES,
      ...rulesOfPolicy("global"),
    },
    descriptions: {
      "": "Rules for the endpoints of all namespaces, and for host endpoints",
      ...GLOBAL_POLICY,
    },
  },
  StagedNetworkPolicy: {
    columns: STAGED_COLUMNS,
    rules: {
      "": NAMESPACED_NAME_RULES,
      spec: POLICY_DELETION,
      ...rulesOfPolicy("namespaced"),
    },
    descriptions: {
      "": "A NetworkPolicy that is tried: flows say what it would decide, and nothing enforces it",
      ...POLICY,
      "spec.stagedAction": ACTION,
    },
  },
  StagedGlobalNetworkPolicy: {
    columns: STAGED_COLUMNS,
    rules: { "": GLOBAL_NAME_RULES, spec: [...GLOBAL_DELETION, ...HOST_OPTION_RULES], ...rulesOfPolicy("global") },
    descriptions: {
      "": "A GlobalNetworkPolicy that is tried: flows say what it would decide, and nothing enforces it",
      ...GLOBAL_POLICY,
      "spec.stagedAction": ACTION,
    },
  },
  StagedKubernetesNetworkPolicy: {
    columns: [
      { name: "Action", path: ".spec.stagedAction" },
      { name: "Types", path: ".spec.policyTypes" },
    ],
    rules: { spec: KUBERNETES_DELETION },
    descriptions: {
      "": "A NetworkPolicy of networking.k8s.io that is tried: flows say what it would decide, and nothing enforces it",
      spec: "The policy's pods and rules, in the form of networking.k8s.io",
      "spec.stagedAction": ACTION,
      ...below("spec.podSelector", "Pods of the namespace that the policy applies to (default: all)", LABEL_SELECTOR),
      "spec.policyTypes": "Directions that the policy isolates (default: Ingress, and Egress if it has such rules)",
      ...below("spec.ingress", "What is allowed to the pods", kubernetesRules("from", "Senders")),
      ...below("spec.egress", "What is allowed from the pods", kubernetesRules("to", "Destinations")),
    },
  },
  NetworkSet: {
    columns: [{ name: "Nets", path: ".spec.nets" }],
    descriptions: {
      "": "Addresses that rules of policies select by labels, as those of a workload in the namespace",
      ...NETWORK_SET,
    },
  },
  GlobalNetworkSet: {
    columns: [{ name: "Nets", path: ".spec.nets" }],
    descriptions: { "": "Addresses that rules of policies select by labels, in no namespace", ...NETWORK_SET },
  },
  Tier: {
    columns: [
      { name: "Order", path: ".spec.order", type: "number" },
      { name: "Default Action", path: ".spec.defaultAction" },
    ],
    rules: { "": TIER_RULES },
    descriptions: {
      "": "A group of policies that is evaluated before or after other groups",
      spec: "The tier's position and its default action",
      "spec.order":
        "Position: lower numbers are evaluated first, tiers without one last (the built-in tier default has 1000000)",
      "spec.defaultAction":
        "What happens to packets of endpoints with policies in the tier if no rule of these matches: Pass continues with the next tier",
    },
  },
  Profile: {
    orchestratorObject: "Namespace and ServiceAccount",
    descriptions: {
      "": "Labels and rules that endpoints inherit, such as those of their namespace. The profile of a network, which the first container writes, does not close containers as long as nobody has edited it",
      spec: "The profile's labels and rules",
      ...below("spec.ingress", "Rules for packets to the endpoints, in order", RULE_DESCRIPTIONS_WITHOUT_HTTP),
      ...below("spec.egress", "Rules for packets from the endpoints, in order", RULE_DESCRIPTIONS_WITHOUT_HTTP),
      "spec.labelsToApply": "Labels that the endpoints get",
    },
  },
};

export const POLICY_FIELDS: CheckedFields = [
  [orderField, { type: "number" }],
  [stagedPortField, { "x-kubernetes-int-or-string": true, minimum: 0, maximum: 65_535 }],
];
