/**
 * Which labels of host endpoints their nodes need, so that the automatic host endpoints have them too: these get the labels of
 * their nodes. Pure.
 */
import { CREATED_BY_LABEL, isAutomatic } from "../../../model/automatic-host-endpoint.ts";
import { ALL_INTERFACES, type HostEndpoint } from "../../../model/host-endpoint.ts";
import type { Node } from "../../../model/node.ts";
import { orchestratorReference } from "../../../model/node-reference.ts";
import { quoted } from "../../../quote.ts";
import type { Labels } from "../../../selector/selector.ts";
import type { Obstacle } from "../../engine/facts.ts";
import { UPGRADE_MARK } from "../../former-names.ts";
import { isKubernetesLabel, LABEL_RULE } from "../../former-storage/former-object.ts";

/** Where the labels of a node are written: in the orchestrator, or in our record if the orchestrator does not know the node. */
export type LabelTarget =
  | { readonly kind: "orchestrator"; readonly name: string }
  | { readonly kind: "record"; readonly name: string };

export interface NodeLabels {
  readonly node: string;
  readonly target: LabelTarget;
  /** What the node had before, of the labels below. */
  readonly former: Labels;
  /** What it must have: labels that it does not have yet, or with another value. */
  readonly wanted: Labels;
}

export interface LabelPlan {
  readonly nodes: readonly NodeLabels[];
  readonly obstacles: readonly Obstacle[];
}

export interface LabelOptions {
  readonly overwriteLabels: boolean;
  /** Whether a Node is the node of the orchestrator, or has its labels copied. */
  readonly targetOf: (node: Node) => LabelTarget;
}

/** For all interfaces, and not automatic. */
export function isMigrated(endpoint: HostEndpoint): boolean {
  return endpoint.spec.interfaceName === ALL_INTERFACES && !isAutomatic(endpoint);
}

/** On etcd the controllers copy the labels of the orchestrator's node to ours, unless that is disabled. */
export function labelTarget(
  { metadata, spec }: Node,
  { isEtcd, syncsLabels }: { readonly isEtcd: boolean; readonly syncsLabels: boolean },
): LabelTarget {
  const { name } = metadata;
  if (!isEtcd) return { kind: "orchestrator", name };
  const reference = syncsLabels ? orchestratorReference(spec) : undefined;
  return reference === undefined ? { kind: "record", name } : { kind: "orchestrator", name: reference };
}

export function planLabels(
  migrated: readonly HostEndpoint[],
  nodes: readonly Node[],
  { overwriteLabels, targetOf }: LabelOptions,
): LabelPlan {
  const byName = new Map(nodes.map((node) => [node.metadata.name, node]));
  const obstacles: Obstacle[] = [];
  const planned: NodeLabels[] = [];
  for (const [name, endpoints] of Map.groupBy(migrated, ({ spec }) => spec.node ?? "")) {
    const node = byName.get(name);
    if (node === undefined) {
      obstacles.push(...endpoints.map(unknownNode));
      continue;
    }
    const target = targetOf(node);
    const present = node.metadata.labels ?? {};
    const { labels, disagreements } = labelsOf(endpoints);
    obstacles.push(...disagreements.map((label) => disagreeing(name, label, endpoints)));
    const missing = Object.entries(labels).filter(([label, value]) => !has(present, label, value));
    const conflicts = missing.filter(([label]) => Object.hasOwn(present, label));
    if (!overwriteLabels) obstacles.push(...conflicts.map((entry) => conflicting(node, entry)));
    if (target.kind === "orchestrator") {
      obstacles.push(...missing.filter((entry) => !isKubernetesLabel(entry)).map((entry) => notALabel(name, entry)));
    }
    if (missing.length === 0) continue;
    const former = conflicts.map(([label]) => [label, present[label] ?? ""] as const);
    planned.push({ node: name, target, wanted: Object.fromEntries(missing), former: Object.fromEntries(former) });
  }
  return { nodes: planned, obstacles };
}

/** Those that are copied; labels that the endpoints of a node disagree about are named. */
function labelsOf(endpoints: readonly HostEndpoint[]): { readonly labels: Labels; readonly disagreements: string[] } {
  const labels: Record<string, string> = {};
  const disagreements = new Set<string>();
  for (const { metadata } of endpoints) {
    for (const [label, value] of Object.entries(metadata.labels ?? {})) {
      if (label === UPGRADE_MARK || label === CREATED_BY_LABEL) continue;
      if (Object.hasOwn(labels, label) && labels[label] !== value) disagreements.add(label);
      labels[label] = value;
    }
  }
  return { labels, disagreements: [...disagreements] };
}

function has(labels: Labels, label: string, value: string): boolean {
  return Object.hasOwn(labels, label) && labels[label] === value;
}

function unknownNode({ metadata, spec }: HostEndpoint): Obstacle {
  return {
    message: `Host endpoint ${quoted(metadata.name)} is of node ${quoted(spec.node ?? "")}, which does not exist: no automatic host endpoint can replace it`,
    remedy: "delete it, or correct its spec.node",
  };
}

function disagreeing(node: string, label: string, endpoints: readonly HostEndpoint[]): Obstacle {
  const values = endpoints
    .filter(({ metadata }) => metadata.labels?.[label] !== undefined)
    .map(({ metadata }) => `${metadata.name} has ${quoted(metadata.labels?.[label])}`);
  return {
    message: `The host endpoints of node ${quoted(node)} disagree about label ${quoted(label)}: ${values.join(", ")}`,
    remedy: "a node has one automatic host endpoint: give them the same value, or delete all but one",
  };
}

function conflicting({ metadata }: Node, [label, value]: readonly [string, string]): Obstacle {
  return {
    message: `Node ${quoted(metadata.name)} has label ${quoted(label)} with value ${quoted(metadata.labels?.[label])}; its host endpoint has ${quoted(value)}`,
    remedy: "change one of them, or replace the labels of nodes with --overwrite-labels",
  };
}

function notALabel(node: string, [label, value]: readonly [string, string]): Obstacle {
  return {
    message: `Label ${quoted(label)} with value ${quoted(value)} of a host endpoint of node ${quoted(node)} cannot be a label of the orchestrator's node`,
    remedy: `rename it in the host endpoint and in the policies that select it: ${LABEL_RULE}`,
  };
}
