/**
 * `-l`: which labels a resource must have.
 *
 * Accepts a selector of this product (`rack == 'a' && has(disk)`) or kubectl's
 * notation (`rack=a,disk,zone in (b,c),!old`). The two cannot be confused: a
 * value is in quotes in the first, and never in the second.
 */

import type { Datastore } from "../../datastore/datastore.ts";
import { quoted } from "../../quote.ts";
import { formatSelectorError, parseSelector } from "../../selector/parse.ts";
import { type Selector, selects } from "../../selector/selector.ts";
import { type Given, UsageError } from "../main/command.ts";
import { SELECTOR_OPTION } from "./options.ts";
import { labelsOfStored, type Stored, withInheritedLabels } from "./stored.ts";

/** `undefined` without `-l`. */
export function selectorOf(given: Given): Selector | undefined {
  const text = given.values.get(SELECTOR_OPTION.name);
  return text === undefined ? undefined : parseLabelSelector(text);
}

/** With the labels that they inherit, if the command looks at labels at all. */
export async function withLabels(store: Datastore, all: readonly Stored[], given: Given): Promise<readonly Stored[]> {
  return looksAtLabels(given) ? withInheritedLabels(store, all) : all;
}

export function looksAtLabels({ values, switches }: Given): boolean {
  return values.has(SELECTOR_OPTION.name) || switches.has("show-labels");
}

export function isSelected(stored: Stored, selector: Selector | undefined): boolean {
  return selector === undefined || selects(selector, labelsOfStored(stored));
}

export function parseLabelSelector(text: string): Selector {
  const parsed = parseSelector(text);
  if (parsed.ok) return parsed.selector;
  const operands = isOwnNotation(text) ? undefined : splitRequirements(text).map(parseRequirement);
  if (operands?.every((operand) => operand !== undefined)) return { kind: "and", operands };
  const wrong = operands === undefined ? undefined : splitRequirements(text)[operands.indexOf(undefined)]?.trim();
  const reason =
    wrong === undefined
      ? formatSelectorError(parsed.error)
      : `${quoted(wrong)} is neither KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B), KEY nor !KEY`;
  throw new UsageError(`${quoted(text)} is not a valid selector: ${reason}`);
}

/** Characters that kubectl's notation does not have. */
function isOwnNotation(text: string): boolean {
  return /["'{}|&]|\b(all|has|global)\(/.test(text);
}

/** At commas that are not inside parentheses. */
function splitRequirements(text: string): readonly string[] {
  return text.split(/,(?![^(]*\))/);
}

const KEY = "[A-Za-z0-9_./-]+";
const VALUE = "[A-Za-z0-9_.-]*";
const COMPARISON = new RegExp(`^(${KEY})\\s*(==|=|!=)\\s*(${VALUE})$`);
const MEMBERSHIP = new RegExp(`^(${KEY})\\s+(in|notin)\\s*\\(([^()]*)\\)$`);
const EXISTENCE = new RegExp(`^(!?)\\s*(${KEY})$`);

function parseRequirement(part: string): Selector | undefined {
  const text = part.trim();
  const [, compared, operator, value = ""] = COMPARISON.exec(text) ?? [];
  if (compared !== undefined) {
    return { kind: "compare", operator: operator === "!=" ? "!=" : "==", label: compared, value };
  }
  const [, member, membership, list = ""] = MEMBERSHIP.exec(text) ?? [];
  if (member !== undefined) {
    const values = list.split(",").map((each) => each.trim());
    return { kind: "member", operator: membership === "in" ? "in" : "not in", label: member, values };
  }
  const [, negation, label] = EXISTENCE.exec(text) ?? [];
  if (label === undefined) return undefined;
  const has: Selector = { kind: "has", label };
  return negation === "" ? has : { kind: "not", operand: has };
}
