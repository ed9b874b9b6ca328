/** The rules of policies and what they refer to, as CEL: what depends on several fields. The messages are those of the model. */
import { HTTP_BEFORE_ROUTING } from "../../model/global-network-policy.ts";
import { HTTP_PATH_MESSAGES } from "../../model/http-rule.ts";
import {
  OF_ALL_NODES_MESSAGE,
  PROBE_PORT_MESSAGE,
  SETTINGS_OF_ALL_NODES,
} from "../../model/node-agent-configuration.ts";
import { ORCHESTRATOR_POLICY } from "../../model/orchestrator-policy.ts";
import { EXCLUDED_BY_SERVICES, RULE_MESSAGES } from "../../model/policy-rules-check.ts";
import { PROBE_PORT } from "../../model/probe-port.ts";
import { DEFAULT_TIER } from "../../model/tier.ts";
import type { CelRule } from "./crd-schema.ts";
import { formatted } from "./formatted-message.ts";
import { isProtocolOf } from "./text-fields.ts";

const SIDES = ["source", "destination"] as const;

/** Rules of `spec.ingress[]` and `spec.egress[]`, by their paths. */
export function rulesOfPolicy(owner: "namespaced" | "global"): Readonly<Record<string, readonly CelRule[]>> {
  return Object.fromEntries(
    (["ingress", "egress"] as const).flatMap((direction) => {
      const path = `spec.${direction}[]`;
      return [
        [path, [...HTTP_RULES[direction], ...WHOLE_RULE, ...SIDES.flatMap(sideRules)]],
        [`${path}.http.paths[]`, direction === "ingress" ? ONE_PATH : []],
        ...["icmp", "notICMP"].map((field) => [`${path}.${field}`, ICMP_TYPE] as const),
        ...SIDES.map((side) => [`${path}.${side}`, serviceRules(owner)] as const),
      ];
    }),
  );
}

const ICMP_TYPE: readonly CelRule[] = [{ rule: "has(self.type)", message: RULE_MESSAGES.icmpType }];

const HAS_ICMP = `has(self.protocol) && ${isProtocolOf("self.protocol", [1, 58], ["ICMP", "ICMPv6"])}`;
const HAS_PORTS = `has(self.protocol) ? ${isProtocolOf("self.protocol", [6, 17, 132], ["TCP", "UDP", "SCTP"])} : has(self.http)`;
const isTcp = (field: string) => isProtocolOf(`self.${field}`, [6], ["TCP"]);

const HTTP_RULES: Readonly<Record<"ingress" | "egress", readonly CelRule[]>> = {
  ingress: [
    {
      rule: "!has(self.http) || self.action == 'Allow'",
      fieldPath: ".http",
      message: RULE_MESSAGES.httpAction,
    },
    {
      rule: `!has(self.http) || !has(self.protocol) || ${isTcp("protocol")}`,
      fieldPath: ".http",
      message: RULE_MESSAGES.httpProtocol,
    },
    {
      rule: `!has(self.http) || !has(self.notProtocol) || !${isTcp("notProtocol")}`,
      fieldPath: ".http",
      message: RULE_MESSAGES.httpNotProtocol,
    },
  ],
  egress: [{ rule: "!has(self.http)", fieldPath: ".http", message: RULE_MESSAGES.httpEgress }],
};

const ONE_PATH: readonly CelRule[] = [{ rule: "has(self.exact) != has(self.prefix)", message: HTTP_PATH_MESSAGES.one }];

const WHOLE_RULE: readonly CelRule[] = [
  ...["icmp", "notICMP"].map((field) => ({
    rule: `!has(self.${field}) || (${HAS_ICMP})`,
    fieldPath: `.${field}`,
    message: RULE_MESSAGES.icmpProtocol,
  })),
];

function sideRules(side: (typeof SIDES)[number]): readonly CelRule[] {
  return [
    ...["ports", "notPorts"].map((field) => ({
      rule: `!has(self.${side}) || !has(self.${side}.${field}) || self.${side}.${field}.size() == 0 || (${HAS_PORTS})`,
      fieldPath: `.${side}.${field}`,
      message: RULE_MESSAGES.ports,
    })),
    ...["nets", "notNets"].map((field) => ({
      rule: `!has(self.ipVersion) || !has(self.${side}) || !has(self.${side}.${field}) || self.${side}.${field}.all(net, net.contains(':') == (self.ipVersion == 6))`,
      fieldPath: `.${side}.${field}`,
      message: 'contains a network that is not of the "ipVersion"; correct one of them',
    })),
  ];
}

function serviceRules(owner: "namespaced" | "global"): readonly CelRule[] {
  const given = EXCLUDED_BY_SERVICES.map((field) => `has(self.${field})`).join(" || ");
  const namespace: CelRule = {
    // A reserved word, which API servers before v1.31 know only in this spelling.
    rule: "!has(self.services) || has(self.services.__namespace__)",
    fieldPath: ".services",
    message: RULE_MESSAGES.serviceNamespace,
  };
  return [
    {
      rule: `!has(self.services) || !(${given})`,
      fieldPath: ".services",
      message: `cannot be combined with ${EXCLUDED_BY_SERVICES.join(", ")}; use a rule for each`,
    },
    ...(owner === "global" ? [namespace] : []),
  ];
}

/** A rule about the name cannot name a field path. */
export const POLICY_NAME_RULES: readonly CelRule[] = [
  {
    rule: `self.spec.tier == '${DEFAULT_TIER}' || self.metadata.name.startsWith(self.spec.tier + '.')`,
    message: "metadata.name does not begin with the name of its tier",
    messageExpression: formatted('metadata.name: "%s" does not begin with the name of its tier; use "%s.%s"', [
      "self.metadata.name",
      "self.spec.tier",
      "self.metadata.name",
    ]),
  },
];

export const RESERVED_NAME_RULES: readonly CelRule[] = [
  {
    rule: `!self.metadata.name.startsWith('${ORCHESTRATOR_POLICY}')`,
    message: `metadata.name begins with "${ORCHESTRATOR_POLICY}", as those do that are derived from the NetworkPolicies of networking.k8s.io; use another name`,
  },
];

export const HOST_OPTION_RULES: readonly CelRule[] = [
  {
    rule: "!self.doNotTrack || !self.preDNAT",
    fieldPath: ".preDNAT",
    message: "cannot be combined with doNotTrack; use two policies",
  },
  ...["doNotTrack", "preDNAT"].map((field) => ({
    rule: `!self.${field} || self.applyOnForward`,
    fieldPath: `.${field}`,
    message: "needs applyOnForward; set applyOnForward: true",
  })),
  {
    rule: "!self.preDNAT || (has(self.types) && self.types.size() > 0 ? !('Egress' in self.types) : !has(self.egress) || self.egress.size() == 0)",
    fieldPath: ".egress",
    message: "cannot be combined with preDNAT, which acts on incoming packets only; remove the egress rules",
  },
  {
    rule: "!(self.doNotTrack || self.preDNAT) || !has(self.ingress) || self.ingress.all(rule, !has(rule.http))",
    fieldPath: ".ingress",
    message: `has a rule with http, which ${HTTP_BEFORE_ROUTING}`,
  },
];

export const TIER_RULES: readonly CelRule[] = [
  {
    rule: `self.metadata.name != '${DEFAULT_TIER}' || self.spec.defaultAction == 'Deny'`,
    message: `spec.defaultAction: is not allowed for the tier "${DEFAULT_TIER}"; use Deny`,
  },
];

export const HOST_ENDPOINT_RULES: readonly CelRule[] = [
  {
    rule: "has(self.node) && self.node != ''",
    fieldPath: ".node",
    message: "is missing; add the name of the host's node",
  },
  {
    rule: "has(self.interfaceName) || (has(self.expectedIPs) && self.expectedIPs.size() > 0)",
    fieldPath: ".interfaceName",
    message: 'is missing, and expectedIPs too; add one of them, or "*" for all interfaces',
  },
  {
    rule: "!has(self.interfaceName) || self.interfaceName == '*' || self.interfaceName.matches('^[a-zA-Z0-9_.-]{1,15}$')",
    fieldPath: ".interfaceName",
    message: 'is not an interface name; use 1 to 15 letters, digits, "_", "." or "-", or "*"',
  },
];

export const NODE_AGENT_RULES: readonly CelRule[] = [
  ...SETTINGS_OF_ALL_NODES.map((field) => ({
    rule: `self.metadata.name == 'default' || !has(self.spec) || !has(self.spec.${field})`,
    message: `spec.${field}: ${OF_ALL_NODES_MESSAGE}`,
  })),
  {
    rule: `!has(self.spec) || !has(self.spec.vxlanPort) || self.spec.vxlanPort != ${PROBE_PORT}`,
    message: `spec.vxlanPort: ${PROBE_PORT_MESSAGE}`,
  },
];

export const NODE_AGENT_NAME_RULES: readonly CelRule[] = [
  {
    rule: "self.metadata.name == 'default' || self.metadata.name.startsWith('node.')",
    message: "metadata.name applies to no node",
    messageExpression: formatted(
      'metadata.name: "%s" applies to no node; use "default" for all nodes, or "node.%s" for the node of that name',
      ["self.metadata.name", "self.metadata.name"],
    ),
  },
];
