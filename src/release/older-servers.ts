/**
 * What an API server of an earlier release of the orchestrator gets: the same objects without what it cannot serve. Pure.
 *
 *   before v1.25   definitions have no validation rules: server-side apply refuses, or the server ignores, the field
 *   before v1.28   rules name no `fieldPath`
 *   before v1.30   messages are not computed, no rule goes through the parts of a text, since the server cannot bound their
 *                  number, and there are no admission policies
 *   before v1.31   rules do not read addresses: ip(), cidr() and similar functions do not exist. Tokens are not bound to Nodes, so that
 *                  no policy demands it: no node would get one
 *   before v1.32   rules do not compare CIDRs: the server cannot bound what that costs
 *
 * An API server compiles a new rule with what its predecessor knew, so that it can be rolled back. So each row is one minor
 * later than the function itself. Nothing depends on these rules: every reader of a resource validates it, and reports it; a
 * pool whose block size was changed gets no new blocks (ipam/assign/other-blocks.ts).
 */

import { counted } from "../counted.ts";
import { identity } from "../identity.ts";
import { isServerBefore, tokenBindingProblem } from "../kube/server-version.ts";
import { BLOCK_SIZES } from "../model/block-sizes.ts";
import { isObject } from "../model/shape.ts";
import { NODE_TOKENS } from "./admission/node-policies.ts";
import { ADMISSION_API } from "./admission/policy-objects.ts";
import type { KubeObject } from "./kube-object.ts";
import { FIRST_WITH_EVERYTHING } from "./supported-servers.ts";

const FIRST_WITH_RULES = "v1.25.0";
const FIRST_WITH_FIELD_PATHS = "v1.28.0";
const FIRST_WITH_MESSAGES = "v1.30.0";
const FIRST_WITH_PARTS_OF_TEXTS = "v1.30.0";
const FIRST_WITH_ADDRESSES = "v1.31.0";
const FIRST_WITH_POLICIES = "v1.30.0";

const RULES = "x-kubernetes-validations";
/** The estimate of its cost exceeds the limit there. */
const COMPARES_CIDRS = /cidr\([^=]*\) == cidr\(/;
const READS_ADDRESSES = /\b(isIP|ip|isCIDR|cidr)\(/;
/** The parentheses of a selector are counted after everything else about it. */
const COUNTS_PARENTHESES = / && self\.findAll\(.*$/;
const HAS_PARTS = /\.(findAll|split)\(/;
/** `self == oldSelf || …`: without the rest the same value, spelled otherwise, is refused too. */
const UNCHANGED = /^self == oldSelf \|\| /;

/** The block size of a pool before and after; without the functions for CIDRs, its default is told by the text of the CIDR. */
const KEEPS_BLOCK_SIZE = /^!isCIDR\(self\.cidr\) \|\| !isCIDR\(oldSelf\.cidr\) \|\| .* == .*$/;
const SAME_BLOCK_SIZE = (() => {
  const isDefault = (pool: string) => {
    const usual = `(self.cidr.contains(':') ? ${BLOCK_SIZES[6].usual} : ${BLOCK_SIZES[4].usual})`;
    // Each by itself: the server cannot bound what comparing with the text of a number costs.
    const smaller = Object.values(BLOCK_SIZES).flatMap(({ usual: last, longest }) =>
      Array.from({ length: longest - last }, (_, index) => last + index + 1).map(
        (length) => `(${pool}.blockSize == ${length} && self.cidr.endsWith('/${length}'))`,
      ),
    );
    return [`${pool}.blockSize == ${usual}`, ...smaller].join(" || ");
  };
  return `has(self.blockSize) ? (has(oldSelf.blockSize) ? self.blockSize == oldSelf.blockSize : (${isDefault("self")})) : (!has(oldSelf.blockSize) || (${isDefault("oldSelf")}))`;
})();

/** In the same order; those that the server does not serve at all are not among them. */
export function servedBy(version: string, objects: readonly KubeObject[]): readonly KubeObject[] {
  if (!isServerBefore(version, FIRST_WITH_EVERYTHING)) return objects;
  return objects
    .filter((object) => object.apiVersion !== ADMISSION_API || servesPolicy(version, object))
    .map((object) =>
      object.kind === "CustomResourceDefinition" ? { ...object, spec: withRules(object["spec"]) } : object,
    );

  function withRules(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(withRules);
    if (!isObject(value)) return value;
    const entries = Object.entries(value).flatMap(([name, member]): readonly (readonly [string, unknown])[] => {
      if (name !== RULES || !Array.isArray(member)) return [[name, withRules(member)]];
      const compiled = member.filter(isObject).flatMap((rule) => ruleFor(version, rule));
      return compiled.length === 0 ? [] : [[name, compiled]];
    });
    return Object.fromEntries(entries);
  }
}

export function servesPolicies(version: string): boolean {
  return !isServerBefore(version, FIRST_WITH_POLICIES);
}

function servesPolicy(version: string, { metadata }: KubeObject): boolean {
  const needsBoundTokens = metadata.name === NODE_TOKENS;
  return servesPolicies(version) && !(needsBoundTokens && tokenBindingProblem(version) !== undefined);
}

type Rule = Readonly<Record<string, unknown>>;

function ruleFor(version: string, { messageExpression, fieldPath, ...given }: Rule): readonly Rule[] {
  if (isServerBefore(version, FIRST_WITH_RULES)) return [];
  const rule = expressionFor(version, String(given["rule"]));
  if (rule === undefined) return [];
  const hasMessage =
    messageExpression !== undefined &&
    !isServerBefore(
      version,
      READS_ADDRESSES.test(String(messageExpression)) ? FIRST_WITH_ADDRESSES : FIRST_WITH_MESSAGES,
    );
  const hasPath = fieldPath !== undefined && !isServerBefore(version, FIRST_WITH_FIELD_PATHS);
  return [{ ...given, rule, ...(hasMessage ? { messageExpression } : {}), ...(hasPath ? { fieldPath } : {}) }];
}

/** The part of the rule that the server can compile; `undefined` if there is none. */
function expressionFor(version: string, rule: string): string | undefined {
  const isTooNew = isServerBefore(version, FIRST_WITH_ADDRESSES) ? READS_ADDRESSES : COMPARES_CIDRS;
  if (isTooNew.test(rule)) {
    if (KEEPS_BLOCK_SIZE.test(rule)) return SAME_BLOCK_SIZE;
    return UNCHANGED.test(rule) ? "self == oldSelf" : undefined;
  }
  if (!isServerBefore(version, FIRST_WITH_PARTS_OF_TEXTS)) return rule;
  const uncounted = rule.replace(COUNTS_PARENTHESES, "");
  return HAS_PARTS.test(uncounted) ? undefined : uncounted;
}

/** Notes for the administrator about what is left out; empty if nothing is. */
export function notesForServer(version: string, objects: readonly KubeObject[]): readonly string[] {
  const rules = countRules(objects) - countRules(servedBy(version, objects));
  const policies = objects.filter(({ apiVersion }) => apiVersion === ADMISSION_API);
  const hasAll = policies.every((policy) => servesPolicy(version, policy));
  return [...(rules === 0 ? [] : [rulesNote(version, rules)]), ...(hasAll ? [] : [policiesNote(version)])];
}

function rulesNote(version: string, count: number): string {
  return (
    `The API server, ${version}, cannot compile ${counted(count, "validation rule")} of the definitions, which go without them. kubectl then accepts ` +
    `values that are not valid: a pool with one is not used, which the log of each ADD says; a policy with one denies all traffic of its endpoints. Use ${identity.adminTool} apply, which refuses them. Run this again when the orchestrator has v1.32 or later.`
  );
}

function policiesNote(version: string): string {
  if (servesPolicies(version)) {
    return `The API server, ${version}, cannot bind tokens to Nodes (v1.31 and later): the policy ${NODE_TOKENS} is left out. Run this again when the orchestrator has v1.32 or later.`;
  }
  return (
    `The API server, ${version}, has no admission policies (v1.30 and later): they are left out. Nothing keeps users from choosing ` +
    "addresses if ipAddrsNoIpam or floatingIPs are enabled, nor the token of one node from writing records of others. Run this again " +
    "when the orchestrator has v1.32 or later."
  );
}

function countRules(value: unknown): number {
  if (Array.isArray(value)) return value.reduce((sum: number, each) => sum + countRules(each), 0);
  if (!isObject(value)) return 0;
  return Object.entries(value).reduce(
    (sum, [name, member]) => sum + (name === RULES && Array.isArray(member) ? member.length : countRules(member)),
    0,
  );
}
