/**
 * Which workloads a policy can mean together: what keeps them running (a Deployment …), and a selector of labels that all of
 * them have and that no rollout changes. Pure.
 *
 * Workloads of several owners with the same labels are one group: no selector tells them apart. If those of one owner have no
 * label in common, they are a group for each set of labels.
 */
import { identity } from "../../identity.ts";
import { inheritedContainerLabels } from "../../model/container-labels.ts";
import { isFinished } from "../../model/finished-pods.ts";
import { isLabelName } from "../../model/label-name.ts";
import { ownerOfEndpoint } from "../../model/pod-owner.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { labelsOf } from "../../policy/judge/members.ts";
import type { PolicyResources } from "../../policy/judge/resources.ts";
import { parseSelector } from "../../selector/parse.ts";
import { selects } from "../../selector/selector.ts";
import { isWorkload, nameOfWorkload, ownLabels } from "../flow-packet.ts";
import type { FlowEnd } from "../flow-record.ts";
import { RecordedWorkloads } from "../replay-flows.ts";

type Labels = Readonly<Record<string, string>>;

export interface WorkloadGroup {
  /** Of the policies about it. */
  readonly namespace: string;
  /** `Deployment shop/web`; of several owners all. */
  readonly titles: readonly string[];
  /** Part of the name of its policy. */
  readonly name: string;
  readonly members: readonly GroupMember[];
  /** Absent: no stable label, so no selector selects it. */
  readonly choice?: SelectorChoice;
}

export interface SelectorChoice {
  /** That all members have. */
  readonly labels: readonly (readonly [name: string, value: string])[];
  readonly selector: string;
  /** Titles of other groups that have these labels too. */
  readonly alsoSelected: readonly string[];
}

export interface GroupMember {
  readonly kind: "pod" | "container";
  readonly namespace: string;
  readonly name: string;
  readonly owner?: { readonly kind: string; readonly name: string };
  readonly node?: string;
  /** Those that a selector for it may name. */
  readonly labels: Labels;
  /** All, also those that its profiles give it. */
  readonly allLabels: Labels;
  /** Absent: it is gone. */
  readonly endpoint?: WorkloadEndpoint;
}

/** Where containers without an orchestrator are. */
const CONTAINER_NAMESPACE = "default";

/** Without its selector. */
export type UnselectedGroup = Omit<WorkloadGroup, "choice">;

export class WorkloadGroups {
  readonly all: readonly UnselectedGroup[];
  private readonly byMember = new Map<string, UnselectedGroup>();
  private readonly selected = new Map<UnselectedGroup, WorkloadGroup>();
  private readonly workloads: RecordedWorkloads;

  constructor(
    ends: Iterable<FlowEnd>,
    private readonly resources: PolicyResources,
  ) {
    this.workloads = new RecordedWorkloads(resources);
    const running = resources.endpoints.filter((endpoint) => !isFinished(endpoint));
    const members = new Map<string, GroupMember>();
    for (const endpoint of running) {
      const member = this.memberAt(endpoint);
      members.set(memberKey(member), member);
    }
    for (const end of ends) {
      const member = this.memberOf(end);
      if (member !== undefined && !members.has(memberKey(member))) members.set(memberKey(member), member);
    }
    this.all = groupedMembers([...members.values()]);
    for (const group of this.all) for (const member of group.members) this.byMember.set(memberKey(member), group);
  }

  /** `undefined`: it is neither a pod nor a container. */
  of(end: FlowEnd): WorkloadGroup | undefined {
    const member = this.memberOf(end);
    const group = member && this.byMember.get(memberKey(member));
    if (group === undefined) return undefined;
    const known = this.selected.get(group) ?? withSelector(group, this.all);
    this.selected.set(group, known);
    return known;
  }

  private memberOf(end: FlowEnd): GroupMember | undefined {
    if (!isWorkload(end)) return undefined;
    const { workload, gone } = this.workloads.of(end, () => []);
    if (workload !== undefined && gone === undefined) return this.memberAt(workload);
    const { owner, node } = end;
    return {
      ...{ kind: end.kind === "pod" ? "pod" : "container", namespace: end.namespace ?? CONTAINER_NAMESPACE },
      ...{ name: end.name ?? end.address, ...this.labelsOf(end.labels, workload) },
      ...(owner === undefined ? {} : { owner }),
      ...(node === undefined ? {} : { node }),
    };
  }

  private memberAt(endpoint: WorkloadEndpoint): GroupMember {
    const { kind, name = endpoint.metadata.name } = nameOfWorkload(endpoint);
    const { labels, namespace = CONTAINER_NAMESPACE } = endpoint.metadata;
    const own = ownLabels({ ...labels, ...inheritedContainerLabels(endpoint, this.resources.containerLabels) });
    const [owner, node] = [ownerOfEndpoint(endpoint), endpoint.spec.node];
    return {
      ...{ kind, namespace, name, endpoint, ...this.labelsOf(own, endpoint) },
      ...(owner === undefined ? {} : { owner }),
      ...(node === undefined ? {} : { node }),
    };
  }

  /** What profiles give counts only for who has no labels of its own; the label of a network is not about one container. */
  private labelsOf(
    own: Labels | undefined,
    workload: WorkloadEndpoint | undefined,
  ): Pick<GroupMember, "labels" | "allLabels"> {
    const allLabels = workload === undefined ? (own ?? {}) : labelsOf(workload, this.resources);
    const labels = usableLabels(own);
    if (Object.keys(labels).length > 0) return { labels, allLabels };
    const given = Object.entries(allLabels).filter(([name]) => workload?.spec.profiles?.includes(name) !== true);
    return { labels: usableLabels(Object.fromEntries(given)), allLabels };
  }
}

function memberKey({ kind, namespace, name, owner, node, labels, endpoint }: GroupMember): string {
  const place = kind === "pod" ? [owner?.kind, owner?.name] : [node];
  return JSON.stringify([kind, namespace, name, ...place, endpoint?.metadata.name, Object.entries(labels)]);
}

function ownerKey({ kind, namespace, name, owner, node }: GroupMember): string {
  if (kind === "container") return JSON.stringify([kind, namespace, name, node]);
  return JSON.stringify([owner?.kind ?? "Pod", namespace, owner?.name ?? name]);
}

function titleOfMember({ kind, namespace, name, owner }: GroupMember): string {
  if (kind === "container") return `container ${name}`;
  return owner === undefined ? `Pod ${namespace}/${name}` : `${owner.kind} ${namespace}/${owner.name}`;
}

function groupedMembers(members: readonly GroupMember[]): readonly UnselectedGroup[] {
  const owned = [...Map.groupBy(members, ownerKey).values()].flatMap((same) =>
    same.length === 1 || Object.keys(commonLabels(same)).length > 0
      ? [same]
      : [...Map.groupBy(same, ({ labels }) => JSON.stringify(Object.entries(labels))).values()],
  );
  const alike = Map.groupBy(owned, (same) => {
    const labels = Object.entries(commonLabels(same));
    return JSON.stringify([same[0]?.namespace, labels.length === 0 ? same.map(memberKey) : labels]);
  });
  return [...alike.values()].map((lists) => groupOf(lists.flat())).toSorted(byText(({ titles }) => titles.join()));
}

function groupOf(members: readonly GroupMember[]): UnselectedGroup {
  const titles = [...new Set(members.map(titleOfMember))].toSorted();
  const [first] = members;
  const names = new Set(members.map(({ owner, name }) => owner?.name ?? name));
  const [, label = ""] = Object.entries(commonLabels(members)).toSorted(byText(([key]) => preferenceKey(key)))[0] ?? [];
  const [only = ""] = names;
  return {
    ...{ namespace: first?.namespace ?? CONTAINER_NAMESPACE, titles, members },
    name: names.size > 1 && label !== "" ? label : only,
  };
}

/** That all have with the same value. */
function commonLabels(members: readonly GroupMember[]): Labels {
  const [first, ...others] = members;
  const common = Object.entries(first?.labels ?? {}).filter(([name, value]) =>
    others.every(({ labels }) => Object.hasOwn(labels, name) && labels[name] === value),
  );
  return Object.fromEntries(common);
}

/** A rollout, a restart or another replica changes them. */
const VOLATILE_LABELS: ReadonlySet<string> = new Set([
  ...["pod-template-hash", "controller-revision-hash", "pod-template-generation", "rollouts-pod-template-hash"],
  ...["statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"],
  ...["job-name", "controller-uid", "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"],
  ...["batch.kubernetes.io/job-completion-index", "batch.kubernetes.io/cronjob-scheduled-timestamp"],
  ...["app.kubernetes.io/version", "helm.sh/chart", "version", "app.kubernetes.io/managed-by"],
]);
/** Where it runs, and labels that namespaces and service accounts give. */
const VOLATILE_PREFIXES = ["topology.kubernetes.io/", "pcns.", "pcsa.", identity.labelPrefix];

/** What the CRDs allow a selector of a rule. */
const LONGEST_SELECTOR = 512;
/** What a selector can say between quotes, whatever a record contains. */
const PLAIN_NAMESPACE = /^[\w.-]+$/;
const PLAIN_VALUE = /^[\x20-\x7e]*$/;

/** Of a record as of a resource: what no selector can be about is left out. Sorted. */
function usableLabels(labels: Labels | undefined): Labels {
  const usable = Object.entries(labels ?? {}).filter(([name, value]) => {
    if (VOLATILE_LABELS.has(name) || VOLATILE_PREFIXES.some((prefix) => name.startsWith(prefix))) return false;
    if (!isLabelName(name) || !PLAIN_VALUE.test(value) || /['"]/.test(value)) return false;
    const text = conditionOf([name, value]);
    const parsed = text.length <= LONGEST_SELECTOR ? parseSelector(text) : undefined;
    return parsed?.ok === true && selects(parsed.selector, { [name]: value });
  });
  return Object.fromEntries(usable.toSorted(byText(([name]) => name)));
}

export function conditionOf([name, value]: readonly [string, string]): string {
  return `${name} == '${value}'`;
}

/** The labels that people mean a workload by, the most telling one first. */
const PREFERRED = [
  ...["app.kubernetes.io/name", "app", "k8s-app", "app.kubernetes.io/component", "component", "role", "name", "tier"],
  ...["app.kubernetes.io/instance", "instance", "app.kubernetes.io/part-of"],
];

function preferenceKey(name: string): string {
  const index = PREFERRED.indexOf(name);
  return `${String(index < 0 ? PREFERRED.length : index).padStart(3, "0")} ${name}`;
}

/** The fewest labels that select no other group, or as few others as possible. */
function withSelector(group: UnselectedGroup, all: readonly UnselectedGroup[]): WorkloadGroup {
  if (!PLAIN_NAMESPACE.test(group.namespace)) return group;
  const labels = Object.entries(commonLabels(group.members)).toSorted(byText(([name]) => preferenceKey(name)));
  const others = all.filter((other) => other !== group && other.namespace === group.namespace);
  let best: SelectorChoice | undefined;
  let fewest = Infinity;
  for (const chosen of labelSubsets(labels)) {
    const selector = chosen.map(conditionOf).join(" && ");
    if (selector.length > LONGEST_SELECTOR) continue;
    const alsoSelected = others.filter((other) => other.members.some((member) => hasAll(member, chosen)));
    if (alsoSelected.length >= fewest) continue;
    fewest = alsoSelected.length;
    best = { labels: chosen, selector, alsoSelected: alsoSelected.flatMap(({ titles }) => titles).toSorted() };
    if (fewest === 0) break;
  }
  return best === undefined ? group : { ...group, choice: best };
}

type Label = readonly [name: string, value: string];
/** Pairs of more labels are not tried. */
const MOST_PAIRED = 8;

function labelSubsets(labels: readonly Label[]): readonly (readonly Label[])[] {
  const paired = labels.slice(0, MOST_PAIRED);
  const pairs = paired.flatMap((first, index) => paired.slice(index + 1).map((second) => [first, second] as const));
  return [...labels.map((label) => [label]), ...pairs, ...(labels.length > 2 ? [labels] : [])];
}

function hasAll({ allLabels: labels }: GroupMember, wanted: readonly Label[]): boolean {
  return wanted.every(([name, value]) => Object.hasOwn(labels, name) && labels[name] === value);
}

/** For `toSorted`: by characters, the same everywhere. */
export function byText<Value>(textOf: (value: Value) => string): (left: Value, right: Value) => number {
  return (left, right) => {
    const [first, second] = [textOf(left), textOf(right)];
    return first < second ? -1 : first === second ? 0 : 1;
  };
}
