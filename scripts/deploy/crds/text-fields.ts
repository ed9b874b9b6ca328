/**
 * Fields whose validation is a function in the model, written as CEL rules with
 * the same messages. A test on a real API server compares both.
 */
import { prefixField, prefixOrAddressField, selectorField } from "../../../src/model/fields.ts";
import { sequenceField } from "../../../src/model/internal-kinds.ts";
import type { CelRule, StructuralSchema } from "./crd-schema.ts";
import { formatted } from "./formatted-message.ts";

const LONGEST_PREFIX = "0000:0000:0000:0000:0000:0000:255.255.255.255/128".length;
const LONGEST_SELECTOR = 1024;

const NOT_A_PREFIX = "is not a CIDR; use address and prefix length, for example";

const IS_PREFIX: CelRule = {
  rule: "isCIDR(self)",
  message: `${NOT_A_PREFIX} "10.0.0.0/16"`,
  messageExpression: formatted(`${NOT_A_PREFIX} "%s"`, [
    "isIP(self) ? self + (ip(self).family() == 4 ? '/32' : '/128') : '10.0.0.0/16'",
  ]),
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

export const MARKED_FIELDS: ReadonlyMap<unknown, StructuralSchema> = new Map<unknown, StructuralSchema>([
  [prefixField, text(LONGEST_PREFIX, [IS_PREFIX, HAS_NO_HOST_BITS])],
  [
    prefixOrAddressField,
    text(LONGEST_PREFIX, [
      {
        rule: "isIP(self) || isCIDR(self)",
        message: 'is neither an IP address nor a CIDR; use for example "10.0.0.1" or "10.0.0.0/24"',
      },
      HAS_NO_HOST_BITS,
    ]),
  ],
  [selectorField, text(LONGEST_SELECTOR, [IS_SELECTOR])],
  [sequenceField, { type: "integer", format: "int64" }],
]);

function text(maxLength: number, rules: readonly CelRule[]): StructuralSchema {
  return { type: "string", maxLength, "x-kubernetes-validations": rules };
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
