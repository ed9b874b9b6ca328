/** The rules of the kinds of BGP as CEL: what depends on several fields. The messages are those of the model. */
import {
  COMMUNITY_PATTERN,
  CONFIGURATION_MESSAGES,
  NODE_FIELDS,
  REFUSED_CONFIGURATION_FIELDS,
} from "../../model/bgp-configuration.ts";
import { PASSWORD_MESSAGES, type RefusedFields } from "../../model/bgp-fields.ts";
import { FILTER_MESSAGES, RULE_LISTS } from "../../model/bgp-filter.ts";
import { PEER_MESSAGES, REFUSED_PEER_FIELDS } from "../../model/bgp-peer.ts";
import type { CelRule } from "./crd-schema.ts";
import { NODE_AGENT_NAME_RULES } from "./policy-rules.ts";

type RulesByPath = Readonly<Record<string, readonly CelRule[]>>;

const PASSWORD: readonly CelRule[] = [
  { rule: "has(self.secretKeyRef) || has(self.file)", fieldPath: ".secretKeyRef", message: PASSWORD_MESSAGES.none },
  { rule: "!has(self.secretKeyRef) || !has(self.file)", fieldPath: ".secretKeyRef", message: PASSWORD_MESSAGES.both },
];

/** Fields of BGPConfiguration that only `default` may have. */
const ONLY_DEFAULT = [
  "nodeToNodeMeshEnabled",
  "asNumber",
  "bindMode",
  "serviceClusterIPs",
  "serviceExternalIPs",
  "serviceLoadBalancerIPs",
  "nodeMeshPassword",
  "nodeMeshMaxRestartTime",
  "ignoredInterfaces",
].filter((field) => !(NODE_FIELDS as readonly string[]).includes(field));

export const BGP_CONFIGURATION_RULES: RulesByPath = {
  "": [
    ...NODE_AGENT_NAME_RULES,
    ...ONLY_DEFAULT.map((field) => ({
      rule: `self.metadata.name == 'default' || !has(self.spec) || !has(self.spec.${field})`,
      message: `spec.${field}: ${field === "asNumber" ? CONFIGURATION_MESSAGES.asNumber : CONFIGURATION_MESSAGES.onlyDefault}`,
    })),
  ],
  spec: [
    ...refusals(REFUSED_CONFIGURATION_FIELDS),
    ...["nodeMeshPassword", "nodeMeshMaxRestartTime"].map((field) => ({
      rule: `!has(self.${field}) || !has(self.nodeToNodeMeshEnabled) || self.nodeToNodeMeshEnabled`,
      fieldPath: ".nodeToNodeMeshEnabled",
      message: CONFIGURATION_MESSAGES.needsMesh(field),
    })),
    {
      rule: `!has(self.prefixAdvertisements) || self.prefixAdvertisements.all(each, each.communities.all(text, text.matches(r'${COMMUNITY_PATTERN}') || (has(self.communities) && self.communities.exists(known, known.name == text))))`,
      fieldPath: ".prefixAdvertisements",
      message: CONFIGURATION_MESSAGES.community,
    },
  ],
  "spec.nodeMeshPassword": PASSWORD,
};

const given = (field: string) => `(has(self.${field}) && self.${field} != '')`;

export const BGP_PEER_RULES: RulesByPath = {
  spec: [
    ...refusals(REFUSED_PEER_FIELDS),
    {
      rule: `!${given("node")} || !${given("nodeSelector")}`,
      fieldPath: ".nodeSelector",
      message: PEER_MESSAGES.nodeSelector,
    },
    {
      rule: `has(self.peerIP) || ${given("peerSelector")} || has(self.localWorkloadSelector)`,
      fieldPath: ".peerIP",
      message: PEER_MESSAGES.noPeer,
    },
    {
      rule: `!has(self.peerIP) || !${given("peerSelector")}`,
      fieldPath: ".peerSelector",
      message: PEER_MESSAGES.peerSelector,
    },
    {
      rule: `!has(self.peerIP) || ${given("peerSelector")} || has(self.asNumber)`,
      fieldPath: ".asNumber",
      message: PEER_MESSAGES.noAsNumber,
    },
    {
      rule: `!${given("peerSelector")} || !has(self.asNumber)`,
      fieldPath: ".asNumber",
      message: PEER_MESSAGES.asNumber,
    },
  ],
  "spec.password": PASSWORD,
};

export const BGP_FILTER_RULES: RulesByPath = Object.fromEntries(
  RULE_LISTS.map(([list, family]) => [
    `spec.${list}[]`,
    [
      {
        rule: "!has(self.cidr) || has(self.matchOperator)",
        fieldPath: ".cidr",
        message: FILTER_MESSAGES.operator,
      },
      {
        rule: "has(self.cidr) || !has(self.matchOperator)",
        fieldPath: ".matchOperator",
        message: FILTER_MESSAGES.cidr,
      },
      {
        rule: `!has(self.cidr) || !isCIDR(self.cidr) || cidr(self.cidr).ip().family() == ${family}`,
        fieldPath: ".cidr",
        message: FILTER_MESSAGES.family(family),
      },
      {
        rule: "!has(self.prefixLength) || (has(self.matchOperator) && self.matchOperator in ['In', 'NotIn'])",
        fieldPath: ".prefixLength",
        message: FILTER_MESSAGES.lengthsWithoutRange,
      },
      {
        rule: "!has(self.prefixLength) || !has(self.prefixLength.min) || !has(self.prefixLength.max) || self.prefixLength.min <= self.prefixLength.max",
        fieldPath: ".prefixLength",
        message: FILTER_MESSAGES.lengthsReversed,
      },
    ],
  ]),
);

export function refusals(fields: RefusedFields): readonly CelRule[] {
  return Object.entries(fields).map(([field, message]) => ({
    rule: `!has(self.${field})`,
    fieldPath: `.${field}`,
    message,
  }));
}
