/**
 * Fields whose validation is a function in the model, written as CEL rules with
 * the same messages. A test on a real API server compares both.
 */

import {
  DETECTION_PATTERN,
  ipv4DetectionField,
  ipv6DetectionField,
  NOT_A_DETECTION,
} from "../../model/address-detection.ts";
import { asNumberField } from "../../model/as-number.ts";
import {
  IPV4_WITH_PORT,
  IPV6_WITH_PORT,
  NOT_A_PEER_ADDRESS,
  NOT_A_RESTART_TIME,
  peerAddressField,
  RESTART_TIME_PATTERN,
  restartTimeField,
} from "../../model/bgp-fields.ts";
import { endpointProtocol } from "../../model/endpoint-port.ts";
import {
  addressField,
  packetNetworkField,
  prefixField,
  prefixOrAddressField,
  selectorField,
} from "../../model/fields.ts";
import {
  HTTP_PATH_MESSAGES,
  httpPathField,
  METHOD_PATTERN,
  methodField,
  NOT_A_METHOD,
  WELL_KNOWN_METHODS,
} from "../../model/http-rule.ts";
import { anyObjectField, quantityField } from "../../model/installation/fields.ts";
import { maxUnavailableField, SHARE_OF_NODES } from "../../model/installation/spec.ts";
import {
  IS_LOOPBACK_PREFIX,
  interfacePrefixField,
  LOOPBACK_PREFIXES,
  NOT_A_PREFIX_LIST,
  PREFIX_LIST_PATTERN,
} from "../../model/interface-prefix.ts";
import { sequenceField } from "../../model/internal-kinds.ts";
import { portField, protocolField } from "../../model/policy-rule.ts";
import { PROTOCOL_NAMES } from "../../model/protocols.ts";
import { orderField } from "../../model/tier.ts";
import type { CelRule, StructuralSchema } from "./crd-schema.ts";
import { formatted } from "./formatted-message.ts";

const LONGEST_PREFIX = "0000:0000:0000:0000:0000:0000:255.255.255.255/128".length;
const LONGEST_DETECTION = 256;
const LONGEST_SELECTOR = 1024;
const LONGEST_SELECTOR_IN_RULE = 512;
const LONGEST_METHOD = 64;
const LONGEST_HTTP_PATH = 256;

const NOT_A_PREFIX = "is not a CIDR; use address and prefix length, for example";

const IS_PREFIX: CelRule = {
  rule: "isCIDR(self)",
  message: `${NOT_A_PREFIX} "10.0.0.0/16"`,
  messageExpression: formatted(`${NOT_A_PREFIX} "%s"`, [
    "isIP(self) ? self + (ip(self).family() == 4 ? '/32' : '/128') : '10.0.0.0/16'",
  ]),
};

const IS_PREFIX_OR_ADDRESS: CelRule = {
  rule: "isIP(self) || isCIDR(self)",
  message: 'is neither an IP address nor a CIDR; use for example "10.0.0.1" or "10.0.0.0/24"',
};

const HAS_NO_HOST_BITS: CelRule = {
  rule: "!isCIDR(self) || cidr(self) == cidr(self).masked()",
  message: "has host bits; use the address of the network",
  messageExpression: formatted('has host bits; use "%s"', ["string(cidr(self).masked())"]),
};

/** Matches every valid selector with `&&` after it, and those whose parentheses are wrong. */
export const SELECTOR_PATTERN = selectorPattern();

const QUOTED_OR_PARENTHESIS = `"[^"]*"|'[^']*'|[()]`;

const IS_SELECTOR: CelRule = {
  rule: [
    `self.matches('^[ \\t]*$') || (self + '&&').matches(${celText(SELECTOR_PATTERN)})`,
    `&& self.findAll(${celText(QUOTED_OR_PARENTHESIS)}).filter(part, part == '(').size()`,
    `== self.findAll(${celText(QUOTED_OR_PARENTHESIS)}).filter(part, part == ')').size()`,
  ].join(" "),
  message: `is not a valid selector; use for example all(), has(zone) or zone == "a" && !has(edge)`,
};

const PORT_PATTERN = "^([0-9]{1,5}(:[0-9]{1,5})?|[a-zA-Z0-9_.-]*[a-zA-Z][a-zA-Z0-9_.-]*)$";

/** In any case, as the model reads it. */
const PROTOCOL_PATTERN = `^(${PROTOCOL_NAMES.map(inAnyCase).join("|")})$`;

const AS_NUMBER_PATTERN = "^([0-9]{1,10}|[0-9]{1,5}\\.[0-9]{1,5})$";

const IS_PEER_ADDRESS: CelRule = {
  rule: [
    "isIP(self)",
    `(self.matches(${celText(IPV4_WITH_PORT)}) && isIP(self.split(':')[0]))`,
    `(self.matches(${celText(IPV6_WITH_PORT)}) && isIP(self.substring(1, self.indexOf(']'))))`,
  ].join(" || "),
  message: NOT_A_PEER_ADDRESS,
};

const LONGEST_DURATION = "99h9999m9999s".length;

const IS_RESTART_TIME: CelRule = {
  rule: `self != '' && self.matches(${celText(RESTART_TIME_PATTERN)}) && duration(self) >= duration('1s') && duration(self) <= duration('4095s')`,
  message: NOT_A_RESTART_TIME,
};

const METHOD_RULES: readonly CelRule[] = [
  { rule: `self.matches(${celText(METHOD_PATTERN.source)})`, message: NOT_A_METHOD },
  {
    rule: `self == self.upperAscii() || !(self.upperAscii() in [${WELL_KNOWN_METHODS.map((method) => `'${method}'`).join(", ")}])`,
    message: "is not a method: methods are case sensitive; use upper case",
    messageExpression: formatted('is not a method: methods are case sensitive; use "%s"', ["self.upperAscii()"]),
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

export const MARKED_FIELDS: ReadonlyMap<unknown, StructuralSchema> = new Map<unknown, StructuralSchema>([
  [prefixField, text(LONGEST_PREFIX, [IS_PREFIX, HAS_NO_HOST_BITS])],
  [prefixOrAddressField, text(LONGEST_PREFIX, [IS_PREFIX_OR_ADDRESS, HAS_NO_HOST_BITS])],
  // CEL does not know IPv4-mapped addresses.
  [packetNetworkField, text(LONGEST_PREFIX, [IS_PREFIX_OR_ADDRESS, HAS_NO_HOST_BITS])],
  [selectorField, text(LONGEST_SELECTOR, [IS_SELECTOR])],
  [
    addressField,
    text(LONGEST_PREFIX, [
      { rule: "isIP(self)", message: 'is not an IP address; use for example "10.0.0.1" or "fd00::1"' },
    ]),
  ],
  [ipv4DetectionField, text(LONGEST_DETECTION, detectionRules(4, "192.0.2.0/24", "192.0.2.1"))],
  [ipv6DetectionField, text(LONGEST_DETECTION, detectionRules(6, "2001:db8::/64", "2001:db8::1"))],
  [
    interfacePrefixField,
    text(LONGEST_DETECTION, [
      { rule: `self.matches(${celText(PREFIX_LIST_PATTERN.source)})`, message: NOT_A_PREFIX_LIST },
      {
        rule: `!self.split(',').exists(part, part.trim() in [${LOOPBACK_PREFIXES.map((each) => `'${each}'`).join(", ")}])`,
        message: IS_LOOPBACK_PREFIX,
      },
    ]),
  ],
  [sequenceField, { type: "integer", format: "int64" }],
  [orderField, { type: "number" }],
  [endpointProtocol, { "x-kubernetes-int-or-string": true, enum: [6, 17, 132, ...spellings(["TCP", "UDP", "SCTP"])] }],
  // Not CEL: in its estimate of costs a number or text is a text without a limit.
  [protocolField, { "x-kubernetes-int-or-string": true, minimum: 1, maximum: 255, pattern: PROTOCOL_PATTERN }],
  [portField, { "x-kubernetes-int-or-string": true, minimum: 0, maximum: 65_535, pattern: PORT_PATTERN }],
  [
    asNumberField,
    { "x-kubernetes-int-or-string": true, minimum: 1, maximum: 4_294_967_295, pattern: AS_NUMBER_PATTERN },
  ],
  [peerAddressField, text(LONGEST_PREFIX, [IS_PEER_ADDRESS])],
  [restartTimeField, text(LONGEST_DURATION, [IS_RESTART_TIME])],
  [anyObjectField, { type: "object", "x-kubernetes-preserve-unknown-fields": true }],
  [quantityField, { "x-kubernetes-int-or-string": true }],
  // As above, not CEL.
  [maxUnavailableField, { "x-kubernetes-int-or-string": true, minimum: 1, pattern: SHARE_OF_NODES.source }],
  [methodField, text(LONGEST_METHOD, METHOD_RULES)],
  [httpPathField, text(LONGEST_HTTP_PATH, HTTP_PATH_RULES)],
]);

/** Less expensive, because there may be many of them: parentheses are not counted. */
export const FIELDS_IN_RULES: ReadonlyMap<unknown, StructuralSchema> = new Map<unknown, StructuralSchema>([
  [
    selectorField,
    text(LONGEST_SELECTOR_IN_RULE, [
      {
        rule: `self.matches('^[ \\t]*$') || (self + '&&').matches(${celText(SELECTOR_PATTERN)})`,
        message: IS_SELECTOR.message,
      },
    ]),
  ],
]);

/** In egress rules, which refuse `http` as a whole. */
export const FIELDS_IN_EGRESS_RULES: ReadonlyMap<unknown, StructuralSchema> = new Map<unknown, StructuralSchema>([
  ...FIELDS_IN_RULES,
  [methodField, text(LONGEST_METHOD, [])],
  [httpPathField, text(LONGEST_HTTP_PATH, [])],
]);

/** A protocol by its number or its name. CEL compares values of one type only. */
export function isProtocolOf(value: string, numbers: readonly number[], names: readonly string[]): string {
  return `(type(${value}) == int ? ${value} in [${numbers.join(", ")}] : ${value} in [${spellings(names)
    .map((name) => `'${name}'`)
    .join(", ")}])`;
}

/** Whether a regular expression is one cannot be said in CEL; the agent reports it. */
function detectionRules(family: 4 | 6, cidr: string, address: string): readonly CelRule[] {
  const each = "self.substring(5).split(',').all(part, isCIDR(part.trim())";
  return [
    { rule: `self.matches(${celText(DETECTION_PATTERN.source)})`, message: NOT_A_DETECTION },
    {
      rule: `!self.startsWith('cidr=') || ${each} && cidr(part.trim()).ip().family() == ${family} && cidr(part.trim()) == cidr(part.trim()).masked())`,
      message: `has a part that is not an IPv${family} CIDR; use for example "cidr=${cidr}"`,
    },
    {
      rule: `!self.startsWith('can-reach=') || (isIP(self.substring(10)) ? ip(self.substring(10)).family() == ${family} : self.matches(${celText("^can-reach=[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?[.]?$")}))`,
      message: `has a destination that is neither an IPv${family} address nor a host name; use for example "can-reach=${address}"`,
    },
  ];
}

function inAnyCase(name: string): string {
  return name.replaceAll(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
}

/** As people write it, in upper and in lower case. */
function spellings(names: readonly string[]): readonly string[] {
  return [...new Set(names.flatMap((name) => [name, name.toUpperCase(), name.toLowerCase()]))];
}

function text(maxLength: number, rules: readonly CelRule[]): StructuralSchema {
  return { type: "string", maxLength, ...(rules.length === 0 ? {} : { "x-kubernetes-validations": rules }) };
}

/** A literal without escape sequences. */
function celText(pattern: string): string {
  return `r'''${pattern}'''`;
}

function selectorPattern(): string {
  const blank = "[ \\t]";
  const label = "[A-Za-z0-9_./-]+";
  const string = `("[^"]*"|'[^']*')`;
  const word = `(contains|starts${blank}*with|ends${blank}*with)`;
  const set = `\\{${blank}*(${string}${blank}*(,${blank}*${string}${blank}*)*)?\\}`;
  const test = [
    `(all|global)${blank}*\\(${blank}*\\)`,
    `has${blank}*\\(${blank}*${label}${blank}*\\)`,
    `${label}${blank}*(==|!=)${blank}*${string}`,
    `${label}${blank}+${word}${blank}*${string}`,
    `${label}${blank}+(not${blank}*)?in${blank}*${set}`,
  ].join("|");
  const operand = `[ \\t(!]*(${test})[ \\t)]*`;
  return `^(${operand}(&&|\\|\\|))+$`;
}
