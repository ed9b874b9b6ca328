/**
 * How many addresses the lists of policies can hold, at most: of a selector those of all that have the rarest of the labels
 * that it requires, or of everything; of named ports at most those of their names. Looks at everything for each label; the node agent keeps the same counts.
 */
import type { NetworkPolicy } from "../../model/network-policy.ts";
import type { Labels } from "../../selector/selector.ts";
import { hostEntity, networkSetEntity, nodeEntity, workloadEntity } from "../compile/entity.ts";
import { namedPort, type Requirement, requirementsOf, type Weight } from "../compile/label-index.ts";
import { policyRecord } from "../compile/policy-record.ts";
import { parsed } from "../effective-selector.ts";
import type { ListAddresses } from "../policy-size.ts";
import { type AnyReference, referencesOf, referenceText } from "../table/names.ts";
import { labelsOf } from "./members.ts";
import type { AnyMember, PolicyResources } from "./resources.ts";

interface Weighed {
  readonly labels: Labels;
  readonly weight: Weight;
}

/** Of any list, however it selects. */
export function mostAddresses(resources: PolicyResources): number {
  const services = (resources.serviceEndpoints ?? []).map(
    ({ addresses, ports }) => addresses.length * (1 + ports.length),
  );
  const members = membersOf(resources)
    .map(weightOf)
    .map(({ addresses, ports }) => addresses + ports);
  return [...services, ...members].reduce((sum, count) => sum + count, 0);
}

export function addressesOfPolicies(resources: PolicyResources): (policy: NetworkPolicy) => ListAddresses {
  const { serviceEndpoints } = resources;
  const sums = new Sums(
    membersOf(resources).map((member) => ({ labels: labelsOf(member, resources), weight: weightOf(member) })),
  );
  return (policy) => {
    const record = policyRecord("", policy, { hasServices: serviceEndpoints !== undefined });
    const { ingress = [], egress = [] } = record.rules;
    const lists = referencesOf([...ingress, ...egress]);
    return new Map([
      ...lists.map((reference) => [referenceText(reference), mostOf(reference, sums, resources)] as const),
      [policy.metadata.name, record.size?.written ?? 0],
    ]);
  };
}

function membersOf({
  endpoints,
  hostEndpoints,
  networkSets,
  globalNetworkSets,
}: PolicyResources): readonly AnyMember[] {
  return [...endpoints, ...hostEndpoints, ...networkSets, ...globalNetworkSets];
}

function weightOf(member: AnyMember): Weight {
  switch (member.kind) {
    case "WorkloadEndpoint":
      return workloadEntity(member).weight;
    case "HostEndpoint":
      return hostEntity(member).weight;
    case "NetworkSet":
    case "GlobalNetworkSet":
      return networkSetEntity(member).weight;
    case "Node":
      return nodeEntity(member).weight;
  }
}

function mostOf(reference: AnyReference, sums: Sums, { serviceEndpoints = [] }: PolicyResources) {
  if (reference.kind === "service") {
    const { namespace, name, withPorts } = reference;
    return serviceEndpoints
      .filter((slice) => slice.namespace === namespace && slice.service === name)
      .reduce((sum, { addresses, ports }) => sum + addresses.length * (withPorts ? ports.length : 1), 0);
  }
  const part = reference.kind === "named port" ? "ports" : "addresses";
  const groups = requirementsOf(parsed(reference.selector));
  const required = groups.map((group) => sums.withOneOf(group, part));
  if (reference.kind === "named port") {
    const { protocol, names } = reference;
    const ports = names.map((name) => sums.ofPort(namedPort(protocol, name)));
    return Math.min(
      ...required,
      ports.reduce((sum, count) => sum + count, 0),
    );
  }
  return required.length === 0 ? sums.ofAll(part) : Math.min(...required);
}

/** Many lists require the same labels and name the same ports: each sum is reckoned once. */
class Sums {
  private readonly known = new Map<string, number>();

  constructor(private readonly weighed: readonly Weighed[]) {}

  ofAll(part: "addresses" | "ports"): number {
    return this.once(part, ({ weight }) => weight[part]);
  }

  withOneOf(group: readonly Requirement[], part: "addresses" | "ports"): number {
    return this.once(`${part} ${JSON.stringify(group)}`, ({ labels, weight }) => {
      const hasOne = group.some(({ label, value }) => Object.hasOwn(labels, label) && labels[label] === value);
      return hasOne ? weight[part] : 0;
    });
  }

  ofPort(key: string): number {
    return this.once(`port ${key}`, ({ weight }) => weight.named.get(key) ?? 0);
  }

  private once(key: string, countOf: (each: Weighed) => number): number {
    const sum = this.known.get(key) ?? this.weighed.reduce((total, each) => total + countOf(each), 0);
    this.known.set(key, sum);
    return sum;
  }
}
