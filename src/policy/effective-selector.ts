/**
 * Selectors of rules and policies, with everything that they imply: the namespace of the policy, selectors of
 * namespaces and service accounts. Endpoints inherit the labels of both, with a prefix. Pure.
 */
import { identity } from "../identity.ts";
import type { EntityRule } from "../model/policy-rule.ts";
import { formatSelector } from "../selector/format.ts";
import { parseSelector } from "../selector/parse.ts";
import type { Selector } from "../selector/selector.ts";

const NAMESPACE_LABEL = `${identity.labelPrefix}namespace`;
const ACCOUNT_LABEL = `${identity.labelPrefix}serviceaccount`;
const OF_NAMESPACE = "pcns.";
const OF_ACCOUNT = "pcsa.";

/** The canonical text of a selector. */
export type SelectorText = string;

export interface PolicyScope {
  readonly selector?: string | undefined;
  /** Of a policy in a namespace. */
  readonly namespace?: string | undefined;
  readonly namespaceSelector?: string | undefined;
  readonly serviceAccountSelector?: string | undefined;
}

/** The endpoints that a policy applies to. */
export function policySelector({
  selector,
  namespace,
  namespaceSelector,
  serviceAccountSelector,
}: PolicyScope): SelectorText {
  return textOf([
    parsed(selector ?? ""),
    ...(namespace === undefined ? [] : [inNamespace(namespace)]),
    ...(namespaceSelector === undefined ? [] : [ofNamespace(namespaceSelector)]),
    ...(serviceAccountSelector === undefined ? [] : [ofAccount(serviceAccountSelector)]),
  ]);
}

/** The endpoints and network sets that a rule names; `undefined` if it does not select by labels. */
export function entitySelector(entity: EntityRule, namespace: string | undefined): SelectorText | undefined {
  const { selector } = entity;
  const parts = [...(isGiven(selector) ? [parsed(selector)] : []), ...ownerParts(entity, namespace)];
  return parts.length === 0 ? undefined : textOf(parts);
}

/**
 * The service accounts that a rule names: what `entitySelector` requires of the namespace and the service account, without
 * the labels of the pods themselves. `undefined` if it requires nothing of them.
 */
export function identitySelector(entity: EntityRule, namespace: string | undefined): SelectorText | undefined {
  const parts = ownerParts(entity, namespace);
  return parts.length === 0 ? undefined : textOf(parts);
}

/** A rule of a policy in a namespace that selects anything by labels is about that namespace, unless it names others. */
function ownerParts(entity: EntityRule, namespace: string | undefined): readonly Selector[] {
  const { selector, notSelector, namespaceSelector, serviceAccounts } = entity;
  const parts: Selector[] = [];
  if (serviceAccounts?.names !== undefined && serviceAccounts.names.length > 0) {
    parts.push({ kind: "member", operator: "in", label: ACCOUNT_LABEL, values: serviceAccounts.names });
  }
  if (isGiven(serviceAccounts?.selector)) parts.push(ofAccount(serviceAccounts.selector));
  if (isGiven(namespaceSelector)) parts.push(ofNamespace(namespaceSelector));
  else if (namespace !== undefined && (parts.length > 0 || isGiven(selector) || isGiven(notSelector)))
    parts.push(inNamespace(namespace));
  return parts;
}

/** Everything that has labels. */
export const EVERYTHING: SelectorText = "all()";

export function canonicalSelector(selector: string): SelectorText {
  return textOf([parsed(selector)]);
}

const parsedBefore = new Map<string, Selector>();
const MOST_REMEMBERED = 10_000;

/** A schema has checked every selector of a resource. Equal ones come again and again: of policies, peers and sets. */
export function parsed(text: string): Selector {
  const known = parsedBefore.get(text);
  if (known !== undefined) return known;
  const result = parseSelector(text);
  if (!result.ok) throw new RangeError(`Cannot parse selector "${text}"`);
  remember(text, result.selector);
  return result.selector;
}

function remember(text: string, selector: Selector): void {
  if (parsedBefore.size >= MOST_REMEMBERED) parsedBefore.clear();
  parsedBefore.set(text, selector);
}

function isGiven(text: string | undefined): text is string {
  return text !== undefined && text.trim() !== "";
}

function textOf(parts: readonly Selector[]): SelectorText {
  const [only, ...more] = parts.filter(({ kind }) => kind !== "all");
  if (only === undefined) return EVERYTHING;
  const selector: Selector = more.length === 0 ? only : { kind: "and", operands: [only, ...more] };
  const text = formatSelector(selector);
  remember(text, selector);
  return text;
}

function inNamespace(namespace: string): Selector {
  return { kind: "compare", operator: "==", label: NAMESPACE_LABEL, value: namespace };
}

function ofNamespace(text: string): Selector {
  return mapped(parsed(text), (leaf) => {
    if (leaf.kind === "all") return { kind: "has", label: NAMESPACE_LABEL };
    if (leaf.kind === "global") return { kind: "not", operand: { kind: "has", label: NAMESPACE_LABEL } };
    return { ...leaf, label: OF_NAMESPACE + leaf.label };
  });
}

function ofAccount(text: string): Selector {
  return mapped(parsed(text), (leaf) => {
    if (leaf.kind === "all" || leaf.kind === "global") return { kind: "has", label: ACCOUNT_LABEL };
    return { ...leaf, label: OF_ACCOUNT + leaf.label };
  });
}

type Leaf = Exclude<Selector, { readonly kind: "not" | "and" | "or" }>;

function mapped(selector: Selector, replace: (leaf: Leaf) => Selector): Selector {
  switch (selector.kind) {
    case "not":
      return { kind: "not", operand: mapped(selector.operand, replace) };
    case "and":
    case "or":
      return { kind: selector.kind, operands: selector.operands.map((operand) => mapped(operand, replace)) };
    default:
      return replace(selector);
  }
}
