/** A draft as YAML to read, edit and apply: comments say whom each rule is about, and what is more general than what was recorded. Pure. */
import { API_VERSION } from "../../identity.ts";
import type { PolicyRule } from "../../model/policy-rule.ts";
import type { PolicyType } from "../../model/policy-spec.ts";
import type { Direction } from "../../policy/effective-rule.ts";
import { formatYaml } from "../../yaml.ts";
import { type Draft, type DraftedPolicy, policySpecOf } from "./draft-policies.ts";
import type { DraftedRule, DraftedSet } from "./draft-rules.ts";

/** `staged`: tried, not enforced. */
export type DraftKind = "staged" | "enforced";

export function draftText({ policies, sets }: Pick<Draft, "policies" | "sets">, kind: DraftKind): string {
  return [...sets.map(setText), ...policies.map((policy) => policyText(policy, kind))].join("---\n");
}

function setText({ name, namespace, labels, nets, comments }: DraftedSet): string {
  const set = { apiVersion: API_VERSION, kind: "NetworkSet", metadata: { name, namespace, labels }, spec: { nets } };
  return `${commentLines(comments, "")}${formatYaml(set)}`;
}

function policyText(policy: DraftedPolicy, kind: DraftKind): string {
  const { name, namespace, comments } = policy;
  const { order, selector, types = [] } = policySpecOf(policy);
  const head = {
    apiVersion: API_VERSION,
    kind: kind === "staged" ? "StagedNetworkPolicy" : "NetworkPolicy",
    metadata: { name, namespace },
    spec: {
      ...(kind === "staged" ? { stagedAction: "Set" } : {}),
      ...(order === undefined ? {} : { order }),
      ...{ selector, types },
    },
  };
  return [
    commentLines(comments, ""),
    formatYaml(head),
    ...(["ingress", "egress"] as const)
      .filter((direction) => types.includes(TYPES[direction]))
      .map((direction) => rulesText(policy[direction], direction)),
  ].join("");
}

const TYPES = { ingress: "Ingress", egress: "Egress" } as const satisfies Record<Direction, PolicyType>;

const NOTHING: Readonly<Record<Direction, string>> = {
  ingress: "No connection to it was recorded: all are denied",
  egress: "No connection from it was recorded: all are denied",
};

function rulesText(rules: readonly DraftedRule[], direction: Direction): string {
  if (rules.length === 0) return commentLines([NOTHING[direction]], "  ");
  return `  ${direction}:\n${rules.map(({ rule, comments }) => ruleText(rule, comments)).join("")}`;
}

function ruleText(rule: PolicyRule, comments: readonly string[]): string {
  const lines = formatYaml([rule]).trimEnd().split("\n");
  return `${commentLines(comments, "    ")}${lines.map((line) => `    ${line}\n`).join("")}`;
}

/** What records say cannot end the line: names of containers are chosen by whoever runs them. */
function commentLines(comments: readonly string[], indent: string): string {
  return comments.map((text) => `${indent}# ${text.replace(/[^\x20-\x7e]/g, "?")}\n`).join("");
}
