/**
 * Which endpoints and network sets does a selector select, and which of them have an address? Looks at everything
 * every time: slow and obvious, and independent of how the compiler finds the same.
 */
import { identity } from "../../identity.ts";
import { type Address, isSameAddress, parseAddress } from "../../ip/address.ts";
import { parseInterfaceAddress, parsePrefixOrAddress, prefixContains } from "../../ip/prefix.ts";
import { inheritedContainerLabels } from "../../model/container-labels.ts";
import { isFinished } from "../../model/finished-pods.ts";
import { concernsNodes, nodeAddresses, nodeLabels, OF_NODE } from "../../model/node-members.ts";
import type { EntityRule } from "../../model/policy-rule.ts";
import { DEFAULT_ALLOW_PROFILE, type Profile } from "../../model/profile.ts";
import { parseSelector } from "../../selector/parse.ts";
import { type Labels, labelNamesIn, type Selector, selects } from "../../selector/selector.ts";
import type { AnyMember, PolicyResources } from "./resources.ts";

const NAMESPACE_LABEL = `${identity.labelPrefix}namespace`;
const ACCOUNT_LABEL = `${identity.labelPrefix}serviceaccount`;
const OF_NAMESPACE = "pcns.";
const OF_ACCOUNT = "pcsa.";

/**
 * Those that a ContainerLabels gives it, its own labels, and those of its profiles, which alone decide what the labels of its
 * namespace and account are. The first of these that has a label decides about its value.
 */
export function labelsOf(
  member: AnyMember,
  { profiles, containerLabels }: Pick<PolicyResources, "profiles" | "containerLabels">,
): Labels {
  if (member.kind === "Node") return nodeLabels(member);
  const { namespace, labels = {} } = member.metadata;
  const isSet = member.kind === "NetworkSet" || member.kind === "GlobalNetworkSet";
  const own = isSet && namespace !== undefined ? { ...labels, [NAMESPACE_LABEL]: namespace } : labels;
  const names = isSet ? (namespace === undefined ? [] : [`kns.${namespace}`]) : profilesOf(member);
  const inherited = names
    .filter((name) => name !== DEFAULT_ALLOW_PROFILE)
    .map((name) => storedProfile(name, profiles)?.spec.labelsToApply ?? {});
  const isInherited = (label: string) => [OF_NAMESPACE, OF_ACCOUNT, OF_NODE].some((each) => label.startsWith(each));
  const trusted = Object.fromEntries(Object.entries(own).filter(([label]) => !isInherited(label)));
  const ofContainer = member.kind === "WorkloadEndpoint" ? inheritedContainerLabels(member, containerLabels) : {};
  return Object.assign({}, ...inherited.toReversed(), trusted, ofContainer);
}

type Profiles = PolicyResources["profiles"];
const profilesByName = new WeakMap<Profiles, ReadonlyMap<string, Profile>>();

/** Each workload has some, and there is one for each namespace: they are found by name. */
export function storedProfile(name: string, profiles: Profiles): Profile | undefined {
  const known = profilesByName.get(profiles) ?? new Map(profiles.map((each) => [each.metadata.name, each]));
  profilesByName.set(profiles, known);
  return known.get(name);
}

function profilesOf(member: AnyMember): readonly string[] {
  return "profiles" in member.spec ? (member.spec.profiles ?? []) : [];
}

function hasAddress(member: AnyMember, address: Address): boolean {
  switch (member.kind) {
    case "WorkloadEndpoint":
      if (isFinished(member)) return false;
      return (member.spec.ipNetworks ?? [])
        .flatMap((text) => parseInterfaceAddress(text)?.address ?? parseAddress(text) ?? [])
        .some((own) => isSameAddress(own, address));
    case "HostEndpoint":
      return (member.spec.expectedIPs ?? [])
        .flatMap((text) => parseAddress(text) ?? [])
        .some((own) => isSameAddress(own, address));
    case "NetworkSet":
    case "GlobalNetworkSet":
      return (member.spec.nets ?? [])
        .flatMap((text) => parsePrefixOrAddress(text) ?? [])
        .some((prefix) => prefixContains(prefix, address));
    case "Node":
      return nodeAddresses(member).some((own) => isSameAddress(own, address));
  }
}

export function membersWith(address: Address, resources: PolicyResources): readonly AnyMember[] {
  const { endpoints, hostEndpoints, networkSets, globalNetworkSets, nodes = [] } = resources;
  const all: readonly AnyMember[] = [...endpoints, ...hostEndpoints, ...networkSets, ...globalNetworkSets, ...nodes];
  return all.filter((member) => hasAddress(member, address));
}

export interface LabelCriteria {
  readonly selector?: string | undefined;
  readonly namespaceSelector?: string | undefined;
  readonly serviceAccountSelector?: string | undefined;
  readonly serviceAccountNames?: readonly string[] | undefined;
  /** Only members of this namespace. */
  readonly namespace?: string | undefined;
}

/** All criteria, on the same member. */
export function isSelected(member: AnyMember, criteria: LabelCriteria, resources: PolicyResources): boolean {
  if (member.kind === "Node" && !concernsNodes(criteria.selector ?? "")) return false;
  return selectionOf(criteria)(labelsOf(member, resources));
}

/** For many members: the selectors are parsed once. */
export function selectionOf(criteria: LabelCriteria): (labels: Labels) => boolean {
  const { serviceAccountNames, namespace } = criteria;
  const [selector, ofNamespace, ofAccount] = [
    criteria.selector,
    criteria.namespaceSelector,
    criteria.serviceAccountSelector,
  ].map((text) => (text?.trim() ? parse(text) : undefined));
  return (labels) => {
    // First, because most policies are of another namespace.
    if (namespace !== undefined && labels[NAMESPACE_LABEL] !== namespace) return false;
    const account = Object.hasOwn(labels, ACCOUNT_LABEL) ? labels[ACCOUNT_LABEL] : undefined;
    return (
      (selector === undefined || selects(selector, labels)) &&
      (ofNamespace === undefined || selectsNamespace(ofNamespace, labels)) &&
      (ofAccount === undefined || selectsAccount(ofAccount, labels)) &&
      (!serviceAccountNames?.length || (account !== undefined && serviceAccountNames.includes(account)))
    );
  };
}

/** The labels that decide whether they are met. */
export function labelNamesOf(criteria: LabelCriteria): ReadonlySet<string> {
  const namesIn = (text: string | undefined, prefix = "") =>
    text?.trim() ? labelNamesIn(parse(text)).map((name) => prefix + name) : [];
  return new Set([
    ...[NAMESPACE_LABEL, ACCOUNT_LABEL],
    ...namesIn(criteria.selector),
    ...namesIn(criteria.namespaceSelector, OF_NAMESPACE),
    ...namesIn(criteria.serviceAccountSelector, OF_ACCOUNT),
  ]);
}

/** `undefined`: the rule does not select its peer by labels. */
export function criteriaOf(entity: EntityRule, policyNamespace: string | undefined): LabelCriteria | undefined {
  const { selector, notSelector, namespaceSelector, serviceAccounts } = entity;
  const byLabels = {
    selector,
    namespaceSelector,
    serviceAccountSelector: serviceAccounts?.selector,
    serviceAccountNames: serviceAccounts?.names,
  };
  const isGiven = Boolean(
    selector?.trim() ||
      namespaceSelector?.trim() ||
      serviceAccounts?.selector?.trim() ||
      serviceAccounts?.names?.length,
  );
  const ownNamespace = namespaceSelector?.trim() ? undefined : policyNamespace;
  if (isGiven) return { ...byLabels, namespace: ownNamespace };
  return notSelector?.trim() && policyNamespace !== undefined ? { namespace: policyNamespace } : undefined;
}

/** The labels of the namespace are those with its prefix; all() means any namespace, global() none. */
function selectsNamespace(selector: Selector, labels: Labels): boolean {
  const isNamespaced = Object.hasOwn(labels, NAMESPACE_LABEL);
  return evaluate(selector, without(OF_NAMESPACE, labels), { all: isNamespaced, global: !isNamespaced });
}

function selectsAccount(selector: Selector, labels: Labels): boolean {
  const hasAccount = Object.hasOwn(labels, ACCOUNT_LABEL);
  return evaluate(selector, without(OF_ACCOUNT, labels), { all: hasAccount, global: hasAccount });
}

function evaluate(selector: Selector, labels: Labels, constants: Readonly<Record<"all" | "global", boolean>>): boolean {
  switch (selector.kind) {
    case "all":
    case "global":
      return constants[selector.kind];
    case "not":
      return !evaluate(selector.operand, labels, constants);
    case "and":
      return selector.operands.every((operand) => evaluate(operand, labels, constants));
    case "or":
      return selector.operands.some((operand) => evaluate(operand, labels, constants));
    default:
      return selects(selector, labels);
  }
}

function without(prefix: string, labels: Labels): Labels {
  return Object.fromEntries(
    Object.entries(labels).flatMap(([label, value]) =>
      label.startsWith(prefix) ? [[label.slice(prefix.length), value]] : [],
    ),
  );
}

function parse(text: string): Selector {
  const parsed = parseSelector(text);
  if (!parsed.ok) throw new RangeError(`Cannot parse selector "${text}"`);
  return parsed.selector;
}
