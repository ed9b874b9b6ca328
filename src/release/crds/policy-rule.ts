/**
 * A rule of a policy or a profile. The checks of the model are in `src/model/policy-rules-check.ts`, `policy-rule.ts` and
 * `http-rule.ts`, with the messages.
 */
import {
  HTTP_PATH_MESSAGES,
  httpPathField,
  METHOD_PATTERN,
  methodCaseMessage,
  methodField,
  NOT_A_METHOD,
  WELL_KNOWN_METHODS,
} from "../../model/http-rule.ts";
import { portField, protocolField } from "../../model/policy-rule.ts";
import { EXCLUDED_BY_SERVICES, RULE_MESSAGES } from "../../model/policy-rules-check.ts";
import { PROTOCOL_NAMES } from "../../model/protocols.ts";
import { celText, formatted, isProtocolOf, text } from "./cel.ts";
import type { CelRule } from "./crd-schema.ts";
import { below, type CheckedFields, type Descriptions, type RulesByPath } from "./kind.ts";

const ENTITY: Descriptions = {
  nets: "Addresses or CIDRs to match",
  notNets: "Addresses or CIDRs not to match",
  selector: "Selector of the endpoints to match",
  notSelector: "Selector of the endpoints not to match",
  namespaceSelector: "Selector of the namespaces whose endpoints match",
  ports: "Ports to match: numbers, ranges such as 1000:2000, or names",
  notPorts: "Ports not to match",
  serviceAccounts: "Service accounts whose endpoints match",
  "serviceAccounts.names": "Names of the service accounts",
  "serviceAccounts.selector": "Selector of the service accounts",
  services: "Service whose endpoints match",
  "services.name": "Name of the service",
  "services.namespace": "Namespace of the service",
};

export const RULE_DESCRIPTIONS: Descriptions = {
  action: "What happens to matching packets",
  ipVersion: "IP version to match",
  protocol: "Protocol to match, by name or number",
  notProtocol: "Protocol not to match",
  icmp: "ICMP messages to match",
  "icmp.type": "Type of the ICMP message",
  "icmp.code": "Code of the ICMP message",
  notICMP: "ICMP messages not to match",
  "notICMP.type": "Type of the ICMP message",
  "notICMP.code": "Code of the ICMP message",
  ...below("source", "Where packets come from", ENTITY),
  ...below("destination", "Where packets go to", ENTITY),
  http: "HTTP requests to match, in ingress rules with action Allow; needs a sidecar beside the workload",
  "http.methods": "Methods to match, case sensitive; none or * matches every method",
  "http.paths": "Paths to match; none matches every path",
  "http.paths.exact": "Path that must be equal",
  "http.paths.prefix": "Text that the path must begin with; /api matches /apix too",
  metadata: "Data about the rule",
  "metadata.annotations": "Annotations of the rule",
};

const REFUSED = "Refused here: only ingress rules of NetworkPolicies and GlobalNetworkPolicies can have it";

/** Egress rules, and the rules of profiles. */
export const RULE_DESCRIPTIONS_WITHOUT_HTTP: Descriptions = {
  ...RULE_DESCRIPTIONS,
  ...Object.fromEntries(
    Object.keys(RULE_DESCRIPTIONS).flatMap((path) => (/^http(\.|$)/.test(path) ? [[path, REFUSED]] : [])),
  ),
};

const SIDES = ["source", "destination"] as const;

/** Rules of `spec.ingress[]` and `spec.egress[]`, by their paths. */
export function rulesOfPolicy(owner: "namespaced" | "global"): RulesByPath {
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
      message: RULE_MESSAGES.services(EXCLUDED_BY_SERVICES),
    },
    ...(owner === "global" ? [namespace] : []),
  ];
}

const PORT_PATTERN = "^([0-9]{1,5}(:[0-9]{1,5})?|[a-zA-Z0-9_.-]*[a-zA-Z][a-zA-Z0-9_.-]*)$";

/** In any case, as the model reads it. */
const PROTOCOL_PATTERN = `^(${PROTOCOL_NAMES.map(inAnyCase).join("|")})$`;

const METHOD_RULES: readonly CelRule[] = [
  { rule: `self.matches(${celText(METHOD_PATTERN.source)})`, message: NOT_A_METHOD },
  {
    rule: `self == self.upperAscii() || !(self.upperAscii() in [${WELL_KNOWN_METHODS.map((method) => `'${method}'`).join(", ")}])`,
    message: "is not a method: methods are case sensitive; use upper case",
    messageExpression: formatted(methodCaseMessage("%s"), ["self.upperAscii()"]),
  },
];

/** As few regular expressions as possible: the API server estimates them to be expensive. */
const IS_NORMAL_PATH = [
  ...["//", "/;", "/.;", "/.."].map((part) => `!self.contains('${part}')`),
  ...["/./", "../"].map((part) => `!(self + '/').contains('${part}')`),
  String.raw`!self.contains('\\')`,
  `!self.matches(${celText("%[0-9a-fA-F]{2}|[[:cntrl:]]")})`,
].join(" && ");

const HTTP_PATH_RULES: readonly CelRule[] = [
  { rule: "self.startsWith('/')", message: `${HTTP_PATH_MESSAGES.slash}; add it` },
  { rule: "!self.contains('?') && !self.contains('#')", message: `${HTTP_PATH_MESSAGES.query}; remove it` },
  { rule: IS_NORMAL_PATH, message: `${HTTP_PATH_MESSAGES.normal}; use the path that the server sees` },
];

const LONGEST_METHOD = 64;
const LONGEST_HTTP_PATH = 256;

export const RULE_FIELDS: CheckedFields = [
  // Not CEL: in its estimate of costs a number or text is a text without a limit.
  [protocolField, { "x-kubernetes-int-or-string": true, minimum: 1, maximum: 255, pattern: PROTOCOL_PATTERN }],
  [portField, { "x-kubernetes-int-or-string": true, minimum: 0, maximum: 65_535, pattern: PORT_PATTERN }],
  [methodField, text(LONGEST_METHOD, METHOD_RULES)],
  [httpPathField, text(LONGEST_HTTP_PATH, HTTP_PATH_RULES)],
];

/** In egress rules, which refuse `http` as a whole. */
export const EGRESS_RULE_FIELDS: CheckedFields = [
  [methodField, text(LONGEST_METHOD, [])],
  [httpPathField, text(LONGEST_HTTP_PATH, [])],
];

function inAnyCase(name: string): string {
  return name.replaceAll(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
}
