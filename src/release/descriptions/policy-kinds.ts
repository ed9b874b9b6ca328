import { below, type Descriptions, type KindDescriptions } from "./fields.ts";
import { RULE, RULE_WITHOUT_HTTP } from "./rule.ts";

const POLICY: Descriptions = {
  spec: "The policy's endpoints and rules",
  "spec.tier": "Tier that the policy is evaluated in; in any other than default, its name must begin with TIER.",
  "spec.order": "Position in the tier: lower numbers are evaluated first, policies without one last, then by name",
  "spec.selector": "Selector of the endpoints that the policy applies to (default: all)",
  "spec.serviceAccountSelector": "Selector of the service accounts whose endpoints the policy applies to",
  "spec.types":
    "Directions that the policy isolates: what its rules do not allow is denied (default: those that it has rules for, or Ingress)",
  ...below("spec.ingress", "Rules for packets to the endpoints, in order", RULE),
  ...below("spec.egress", "Rules for packets from the endpoints, in order", RULE_WITHOUT_HTTP),
};

const NETWORK_SET: Descriptions = {
  spec: "The addresses",
  "spec.nets": "Addresses or CIDRs; rules select them by the labels of the resource",
};

export const POLICY_KINDS: KindDescriptions = {
  NetworkPolicy: {
    "": "Rules for the endpoints of one namespace",
    ...POLICY,
  },
  GlobalNetworkPolicy: {
    "": "Rules for the endpoints of all namespaces, and for host endpoints",
    ...POLICY,
    "spec.namespaceSelector": "Selector of the namespaces whose endpoints the policy applies to",
    "spec.doNotTrack":
      "Evaluate the rules at host endpoints before connection tracking, which allowed packets skip; needs applyOnForward",
    "spec.preDNAT": "Evaluate the rules at host endpoints before destinations are translated; needs applyOnForward",
    "spec.applyOnForward": "Also apply the rules to packets that a host endpoint forwards",
  },
  NetworkSet: {
    "": "Addresses that rules of policies select by labels, as those of a workload in the namespace",
    ...NETWORK_SET,
  },
  GlobalNetworkSet: { "": "Addresses that rules of policies select by labels, in no namespace", ...NETWORK_SET },
  Tier: {
    "": "A group of policies that is evaluated before or after other groups",
    spec: "The tier's position and its default action",
    "spec.order":
      "Position: lower numbers are evaluated first, tiers without one last (the built-in tier default has 1000000)",
    "spec.defaultAction":
      "What happens to packets of endpoints with policies in the tier if no rule of these matches: Pass continues with the next tier",
  },
  Profile: {
    "": "Labels and rules that endpoints inherit, such as those of their namespace. The profile of a network, which the first container writes, does not close containers as long as nobody has edited it",
    spec: "The profile's labels and rules",
    ...below("spec.ingress", "Rules for packets to the endpoints, in order", RULE_WITHOUT_HTTP),
    ...below("spec.egress", "Rules for packets from the endpoints, in order", RULE_WITHOUT_HTTP),
    "spec.labelsToApply": "Labels that the endpoints get",
  },
};
