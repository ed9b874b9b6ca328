/**
 * ContainerLabels: labels of a container, by its name, or of every container of a network. The endpoints of containers inherit
 * them while they exist, so they outlast a restart, which makes another endpoint. Not of pods: the orchestrator labels these.
 */
import * as v from "valibot";
import { identity, PRODUCT_API } from "../identity.ts";
import { quoted } from "../quote.ts";
import { NETWORK_ANNOTATION } from "./endpoint-labels.ts";
import { LONGEST_NAME } from "./longest-name.ts";
import { checkLabels } from "./metadata.ts";
import { nameMap } from "./name-map.ts";
import { OF_NODE } from "./node-members.ts";
import { isNodeName } from "./node-name.ts";
import type { Problem } from "./problem.ts";
import { defineResource, type Resource } from "./resource.ts";
import type { WorkloadEndpoint } from "./workload-endpoint.ts";

type Labels = Readonly<Record<string, string>>;

const specSchema = v.object({
  node: v.exactOptional(v.string()),
  container: v.exactOptional(v.string()),
  network: v.exactOptional(v.string()),
  labels: v.optional(nameMap(v.string()), {}),
});

export type ContainerLabelsSpec = Readonly<v.InferOutput<typeof specSchema>>;
export type ContainerLabels = Resource<"ContainerLabels", ContainerLabelsSpec>;

export const containerLabels = defineResource({
  kind: "ContainerLabels",
  api: PRODUCT_API,
  namespaced: false,
  spec: v.optional(specSchema, {}),
  complete: (spec): ContainerLabelsSpec => spec,
  check: (spec) => [...checkTarget(spec), ...checkGivenLabels(spec.labels)],
});

function checkTarget({ node, container, network }: ContainerLabelsSpec): readonly Problem[] {
  if (container !== undefined && network !== undefined) {
    const message = "cannot be combined with spec.container; write a resource for each of them";
    return [{ path: "spec.network", value: network, message }];
  }
  if (network !== undefined) {
    const problems = [...checkRuntimeName("spec.network", network)];
    if (node !== undefined) {
      const message = "cannot be combined with spec.network, which means the network on every node; remove it";
      problems.push({ path: "spec.node", value: node, message });
    }
    return problems;
  }
  const problems: Problem[] = [];
  if (!container) {
    const message = "is missing, and network too; add the name of a container, or that of a network";
    problems.push({ path: "spec.container", value: container, message });
  } else problems.push(...checkRuntimeName("spec.container", container));
  if (!node) {
    const message = "is missing; add the node of the container: names of containers are unique on one host only";
    problems.push({ path: "spec.node", value: node, message });
  } else if (!isNodeName(node)) {
    const message = `is not the name of a node; use at most ${LONGEST_NAME} characters, without a slash`;
    problems.push({ path: "spec.node", value: node, message });
  }
  return problems;
}

/** What runtimes accept as the name of a container, and CNI as that of a network. */
const RUNTIME_NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;

export const RUNTIME_NAME_RULE = 'use letters, digits, "_", "." and "-", a letter or digit first';

/** Of a container or a network. */
export function isRuntimeName(text: string): boolean {
  return RUNTIME_NAME.test(text);
}

function checkRuntimeName(path: string, value: string): readonly Problem[] {
  if (isRuntimeName(value)) return [];
  return [{ path, value, message: `is not a name that a runtime gives; ${RUNTIME_NAME_RULE}` }];
}

function checkGivenLabels(labels: Labels): readonly Problem[] {
  const path = "spec.labels";
  if (Object.keys(labels).length === 0) {
    return [{ path, value: labels, message: "is empty; add a label, or delete the resource" }];
  }
  const reserved = Object.keys(labels).find(isReserved);
  if (reserved === undefined) return checkLabels(labels, path);
  return [
    { path, value: reserved, message: "is a label that only the product itself sets; use another one" },
    ...checkLabels(labels, path),
  ];
}

/** Labels of namespaces and service accounts, and those by which policies know where an endpoint belongs. */
const RESERVED = [identity.labelPrefix, "pcns.", "pcsa.", OF_NODE];

function isReserved(label: string): boolean {
  return RESERVED.some((prefix) => label.startsWith(prefix));
}

/** Of stored labels, those that count. */
export function givenLabels({ labels }: ContainerLabelsSpec): Labels {
  if (!Object.keys(labels).some(isReserved)) return labels;
  return Object.fromEntries(Object.entries(labels).filter(([label]) => !isReserved(label)));
}

/** A container whose endpoint can inherit labels. */
export interface NamedContainer {
  readonly node: string | undefined;
  /** `undefined`: its runtime did not say. */
  readonly container: string | undefined;
  readonly network: string | undefined;
}

/** `undefined` for the endpoint of a pod. */
export function containerOf({ metadata, spec }: WorkloadEndpoint): NamedContainer | undefined {
  if (spec.orchestrator !== CONTAINER_ORCHESTRATOR) return undefined;
  return { node: spec.node, container: spec.workload, network: metadata.annotations?.[NETWORK_ANNOTATION] };
}

/** `spec.orchestrator` of an endpoint that belongs to no pod. */
export const CONTAINER_ORCHESTRATOR = "cni";

/** Whether the endpoint inherits the labels. */
export function isLabelledBy(endpoint: WorkloadEndpoint, { spec }: ContainerLabels): boolean {
  const key = targetKey(spec);
  return key !== undefined && targetsOf(endpoint).includes(key);
}

const NOTHING: readonly string[] = [];

/** What can be about the endpoint, most specific first: its container, then its network. */
export function targetsOf(endpoint: WorkloadEndpoint): readonly string[] {
  const found = containerOf(endpoint);
  if (found === undefined) return NOTHING;
  const { node, container, network } = found;
  const ofContainer = node === undefined || container === undefined ? undefined : targetKey({ node, container });
  return [ofContainer, network === undefined ? undefined : targetKey({ network })].filter((key) => key !== undefined);
}

/** What an endpoint inherits, most specific first; of those about the same, by name. */
export function labelSourcesOf(
  endpoint: WorkloadEndpoint,
  all: readonly ContainerLabels[],
): readonly ContainerLabels[] {
  const resources = resourcesByTarget(all);
  return targetsOf(endpoint).flatMap((key) => resources.get(key) ?? []);
}

type ByTarget = ReadonlyMap<string | undefined, readonly ContainerLabels[]>;

/** Every endpoint asks for those of the same list: it is sorted once. */
const SORTED = new WeakMap<readonly ContainerLabels[], ByTarget>();

function resourcesByTarget(all: readonly ContainerLabels[]): ByTarget {
  const known = SORTED.get(all);
  if (known !== undefined) return known;
  const inOrder = all.toSorted((left, right) => (left.metadata.name < right.metadata.name ? -1 : 1));
  const made = Map.groupBy(inOrder, ({ spec }) => targetKey(spec));
  SORTED.set(all, made);
  return made;
}

/** The labels that `all` gives the endpoint. They take precedence over those in its record. */
export function inheritedContainerLabels(endpoint: WorkloadEndpoint, all: readonly ContainerLabels[]): Labels {
  return Object.assign(
    {},
    ...labelSourcesOf(endpoint, all)
      .toReversed()
      .map(({ spec }) => givenLabels(spec)),
  );
}

/** Two resources about the same container could disagree. */
export function checkSameTarget(resource: ContainerLabels, all: readonly ContainerLabels[]): readonly Problem[] {
  const ofTarget = resourcesByTarget(all).get(targetKey(resource.spec)) ?? [];
  return sameTargetProblems(resource, namesIn(ofTarget));
}

export function checkSameTargets(all: readonly ContainerLabels[]): ReadonlyMap<ContainerLabels, readonly Problem[]> {
  const groups = [...resourcesByTarget(all).values()];
  return new Map(
    groups.flatMap((ofTarget) => {
      const names = namesIn(ofTarget);
      return ofTarget.map((each) => [each, sameTargetProblems(each, names)] as const);
    }),
  );
}

/** The first two: at least one of them is another than that of any resource. */
function namesIn(all: readonly ContainerLabels[]): readonly string[] {
  const first = all[0]?.metadata.name;
  const second = all.find(({ metadata }) => metadata.name !== first)?.metadata.name;
  return [first, second].filter((name) => name !== undefined);
}

function sameTargetProblems({ metadata, spec }: ContainerLabels, names: readonly string[]): readonly Problem[] {
  const other = names.find((name) => name !== metadata.name);
  if (other === undefined) return [];
  const message = `has its labels from ContainerLabels ${quoted(other)} already; change that one`;
  return spec.container === undefined
    ? [{ path: "spec.network", value: spec.network, message }]
    : [{ path: "spec.container", value: spec.container, message }];
}

export type LabelTarget = Pick<ContainerLabelsSpec, "node" | "container" | "network">;

export function isSameTarget(left: LabelTarget, right: LabelTarget): boolean {
  return left.node === right.node && left.container === right.container && left.network === right.network;
}

/** The same text means the same target. `undefined`: a stored record that says something else than checks allow, about nobody. */
export function targetKey({ node, container, network }: LabelTarget): string | undefined {
  if (container === undefined) {
    return network === undefined || node !== undefined ? undefined : JSON.stringify([network]);
  }
  return network !== undefined || node === undefined ? undefined : JSON.stringify([node, container]);
}
