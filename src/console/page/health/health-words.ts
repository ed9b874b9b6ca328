/** The health in few words, and what is first in it. Pure. */
import { counted } from "../../../counted.ts";
import type { Health, HealthNode, HealthProblem, State } from "../../api/health.ts";

const GRAVITY: Readonly<Record<State, number>> = { failed: 0, warning: 1, unknown: 2, ok: 3 };

function byGravity(one: { readonly state: State }, other: { readonly state: State }): number {
  return GRAVITY[one.state] - GRAVITY[other.state];
}

/** A problem, and the node that it is about. */
export interface ShownProblem extends HealthProblem {
  readonly node?: string;
}

/** Those of the cluster and of its nodes, the gravest first. */
export function problemsOf({ problems, nodes }: Health): readonly ShownProblem[] {
  const ofNodes = nodes.flatMap((node) => node.problems.map((problem) => ({ ...problem, node: node.name })));
  return [...problems, ...ofNodes].toSorted(byGravity);
}

export function headline(health: Health): string {
  const problems = problemsOf(health);
  const failed = problems.filter(({ state }) => state === "failed").length;
  const warnings = problems.length - failed;
  if (problems.length > 0)
    return [
      ...(failed > 0 ? [counted(failed, "failure")] : []),
      ...(warnings > 0 ? [counted(warnings, "warning")] : []),
    ].join(", ");
  return {
    ok: "Everything works",
    warning: "Something needs attention",
    failed: "Something failed",
    unknown: "Not everything is known",
  }[health.state];
}

/** How many nodes are in each state; only states that there are. */
export function nodeCounts(nodes: readonly HealthNode[]): readonly (readonly [State, number])[] {
  const states: readonly State[] = ["failed", "warning", "unknown", "ok"];
  return states
    .map((state) => [state, nodes.filter((node) => node.state === state).length] as const)
    .filter(([, count]) => count > 0);
}

/** Troubled ones first, then by name as people count. */
export function sortedNodes(nodes: readonly HealthNode[]): readonly HealthNode[] {
  return nodes.toSorted((one, other) => byGravity(one, other) || compareNames(one.name, other.name));
}

const NAMES = new Intl.Collator("en", { numeric: true });

function compareNames(one: string, other: string): number {
  return NAMES.compare(one, other);
}

/** By a part of the name, address or version, in any case. */
export function isNodeFound({ name, addresses, version, agent }: HealthNode, text: string): boolean {
  const wanted = text.trim().toLowerCase();
  return [name, version, agent, ...addresses].some((each) => each.toLowerCase().includes(wanted));
}
