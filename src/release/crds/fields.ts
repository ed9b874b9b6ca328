/** Fields of several kinds whose check is a function of `src/model/fields.ts`, with its messages: addresses, CIDRs and selectors. */
import {
  ADDRESS_MESSAGES,
  addressField,
  packetNetworkField,
  prefixField,
  prefixOrAddressField,
  selectorField,
  singleAddressField,
} from "../../model/fields.ts";
import { celText, formatted, LONGEST_PREFIX, text } from "./cel.ts";
import type { CelRule } from "./crd-schema.ts";
import type { CheckedFields } from "./kind.ts";

const LONGEST_SELECTOR = 1024;
const LONGEST_SELECTOR_IN_RULE = 512;

const IS_PREFIX: CelRule = {
  rule: "isCIDR(self)",
  message: ADDRESS_MESSAGES.prefix("10.0.0.0/16"),
  messageExpression: formatted(ADDRESS_MESSAGES.prefix("%s"), [
    "isIP(self) ? self + (ip(self).family() == 4 ? '/32' : '/128') : '10.0.0.0/16'",
  ]),
};

const IS_PREFIX_OR_ADDRESS: CelRule = {
  rule: "isIP(self) || isCIDR(self)",
  message: ADDRESS_MESSAGES.either,
};

const HAS_NO_HOST_BITS: CelRule = {
  rule: "!isCIDR(self) || cidr(self) == cidr(self).masked()",
  message: "has host bits; use the address of the network",
  messageExpression: formatted(ADDRESS_MESSAGES.hostBits("%s"), ["string(cidr(self).masked())"]),
};

const IS_SINGLE_ADDRESS: CelRule = { rule: "isIP(self)", message: ADDRESS_MESSAGES.single };

const IS_SPELLED_USUALLY: CelRule = {
  rule: "!isIP(self) || ip.isCanonical(self)",
  message: "is spelled unusually",
  messageExpression: formatted(ADDRESS_MESSAGES.spelling("%s"), ["string(ip(self))"]),
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

export const COMMON_FIELDS: CheckedFields = [
  [prefixField, text(LONGEST_PREFIX, [IS_PREFIX, HAS_NO_HOST_BITS])],
  [prefixOrAddressField, text(LONGEST_PREFIX, [IS_PREFIX_OR_ADDRESS, HAS_NO_HOST_BITS])],
  // CEL does not know IPv4-mapped addresses.
  [packetNetworkField, text(LONGEST_PREFIX, [IS_PREFIX_OR_ADDRESS, HAS_NO_HOST_BITS])],
  [selectorField, text(LONGEST_SELECTOR, [IS_SELECTOR])],
  [singleAddressField, text(LONGEST_PREFIX, [IS_SINGLE_ADDRESS, IS_SPELLED_USUALLY])],
  [addressField, text(LONGEST_PREFIX, [{ rule: "isIP(self)", message: ADDRESS_MESSAGES.address }])],
];

/** Less expensive in rules, because there may be many of them: parentheses are not counted. */
export const COMMON_FIELDS_IN_RULES: CheckedFields = [
  [
    selectorField,
    text(LONGEST_SELECTOR_IN_RULE, [
      {
        rule: `self.matches('^[ \\t]*$') || (self + '&&').matches(${celText(SELECTOR_PATTERN)})`,
        message: IS_SELECTOR.message,
      },
    ]),
  ],
];

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
