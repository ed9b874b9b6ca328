/** What else selects nodes by labels, and selects other nodes when labels are added. Pure. */
import type { BGPPeer } from "../../../model/bgp-peer.ts";
import type { IPPool } from "../../../model/ip-pool.ts";
import { parseSelector } from "../../../selector/parse.ts";
import { type Labels, selects } from "../../../selector/selector.ts";

export interface ChangedNode {
  readonly name: string;
  readonly before: Labels;
  readonly after: Labels;
}

export interface NodeSelecting {
  readonly pools: readonly IPPool[];
  readonly peers: readonly BGPPeer[];
  readonly scheduled: readonly Scheduled[];
}

/** Pods that may run only on some nodes. */
export interface Scheduled {
  /** `DaemonSet shop/edge` */
  readonly title: string;
  readonly nodeSelector: Labels;
  /** One of the terms must hold; none: all nodes. */
  readonly terms: readonly SelectorTerm[];
}

export interface SelectorTerm {
  readonly expressions: readonly Expression[];
  /** About the node's own fields; only its name can be one. */
  readonly fields: readonly Expression[];
}

export interface Expression {
  readonly key: string;
  readonly operator: string;
  readonly values: readonly string[];
}

/** One line for each selector whose nodes change. */
export function affectedSelectors(nodes: readonly ChangedNode[], selecting: NodeSelecting): readonly string[] {
  const lines: string[] = [];
  const compare = (title: string, isSelected: (labels: Labels, name: string) => boolean) => {
    const changed = (from: "before" | "after", to: "before" | "after") =>
      nodes
        .filter((node) => !isSelected(node[from], node.name) && isSelected(node[to], node.name))
        .map(({ name }) => name);
    const [gained, lost] = [changed("before", "after"), changed("after", "before")];
    if (gained.length > 0) lines.push(`${title} selects ${gained.join(", ")} too`);
    if (lost.length > 0) lines.push(`${title} no longer selects ${lost.join(", ")}`);
  };
  for (const { metadata, spec } of selecting.pools) {
    compare(`nodeSelector of IPPool ${metadata.name}`, (labels) => isSelectedBy(spec.nodeSelector, labels));
  }
  for (const { metadata, spec } of selecting.peers) {
    for (const field of ["nodeSelector", "peerSelector"] as const) {
      const selector = spec[field];
      if (selector === undefined) continue;
      compare(`${field} of BGPPeer ${metadata.name}`, (labels) => isSelectedBy(selector, labels));
    }
  }
  for (const each of selecting.scheduled) {
    compare(`nodeSelector or affinity of ${each.title}`, (labels, name) => mayRun(each, labels, name));
  }
  return lines;
}

function isSelectedBy(selector: string, labels: Labels): boolean {
  const parsed = parseSelector(selector);
  return parsed.ok && selects(parsed.selector, labels);
}

function mayRun({ nodeSelector, terms }: Scheduled, labels: Labels, name: string): boolean {
  return (
    Object.entries(nodeSelector).every(([label, value]) => labelValue(labels, label) === value) &&
    (terms.length === 0 ||
      terms.some(
        ({ expressions, fields }) =>
          expressions.length + fields.length > 0 &&
          expressions.every((each) => holds(each, labelValue(labels, each.key))) &&
          fields.every((each) => each.key !== "metadata.name" || holds(each, name)),
      ))
  );
}

function labelValue(labels: Labels, label: string): string | undefined {
  return Object.hasOwn(labels, label) ? labels[label] : undefined;
}

function holds({ operator, values }: Expression, actual: string | undefined): boolean {
  switch (operator) {
    case "In":
      return actual !== undefined && values.includes(actual);
    case "NotIn":
      return actual === undefined || !values.includes(actual);
    case "Exists":
      return actual !== undefined;
    case "DoesNotExist":
      return actual === undefined;
    case "Gt":
      return actual !== undefined && Number(actual) > Number(values[0]);
    case "Lt":
      return actual !== undefined && Number(actual) < Number(values[0]);
    default:
      return false;
  }
}
