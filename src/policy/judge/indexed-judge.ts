/**
 * The judge for many packets: hands it, for each packet, only those resources that can matter to it, found by index. It looks at
 * all that it is given, so that the answer is the same, and does not take the time of a whole cluster. Pure.
 */
import { type Address, formatAddress, parseAddress } from "../../ip/address.ts";
import { parseInterfaceAddress, parsePrefixOrAddress, prefixAround } from "../../ip/prefix.ts";
import type { HostEndpoint } from "../../model/host-endpoint.ts";
import type { NodeAgentSettings } from "../../model/node-agent-configuration.ts";
import { nodeAddresses } from "../../model/node-members.ts";
import type { EntityRule } from "../../model/policy-rule.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import type { Labels } from "../../selector/selector.ts";
import type { Direction } from "../effective-rule.ts";
import { policyLimits } from "../policy-size.ts";
import { enforcedPolicy } from "./enforced-policy.ts";
import { type ExplainedPacket, type Explanation, explain } from "./explain.ts";
import { judgeInterface } from "./host-judge.ts";
import { nodeOf } from "./host-passages.ts";
import { type Judgement, judge, scopeOf } from "./judge.ts";
import { labelsOf, membersWith, selectionOf } from "./members.ts";
import type { Packet } from "./packet.ts";
import type { AnyEndpoint, AnyMember, AnyPolicy, PolicyResources } from "./resources.ts";

type SettingsOf = ExplainedPacket["settingsOf"];

export class IndexedJudge {
  private readonly endpoints: ReadonlyMap<string, readonly WorkloadEndpoint[]>;
  private readonly hostsByAddress: ReadonlyMap<string, readonly HostEndpoint[]>;
  private readonly hostsByNode: ReadonlyMap<string | undefined, readonly HostEndpoint[]>;
  private readonly nodes: ReadonlyMap<string, NonNullable<PolicyResources["nodes"]>>;
  private readonly networkSets: SetsByNetwork<PolicyResources["networkSets"][number]>;
  private readonly globalNetworkSets: SetsByNetwork<PolicyResources["globalNetworkSets"][number]>;
  private readonly services: ReadonlyMap<string, NonNullable<PolicyResources["serviceEndpoints"]>>;
  private readonly settings = new Map<string, NodeAgentSettings>();
  private readonly enforced = new Map<string, EnforcedPolicies>();
  private readonly limits = new Map<string, string>();
  private readonly settingsOf: SettingsOf;

  constructor(
    private readonly resources: PolicyResources,
    settingsOf: SettingsOf,
  ) {
    const known = new Map<string, NodeAgentSettings>();
    this.settingsOf = (node) => {
      const settings = known.get(node) ?? settingsOf(node);
      known.set(node, settings);
      return settings;
    };
    const { endpoints, hostEndpoints, nodes = [], networkSets, globalNetworkSets, serviceEndpoints = [] } = resources;
    this.endpoints = byKeys(endpoints, addressesOfWorkload);
    this.hostsByAddress = byKeys(hostEndpoints, ({ spec }) => canonical(spec.expectedIPs ?? []));
    this.hostsByNode = Map.groupBy(hostEndpoints, ({ spec }) => spec.node);
    this.nodes = byKeys(nodes, (node) => nodeAddresses(node).map(formatAddress));
    this.networkSets = new SetsByNetwork(networkSets);
    this.globalNetworkSets = new SetsByNetwork(globalNetworkSets);
    this.services = byKeys(serviceEndpoints, ({ addresses }) => canonical(addresses));
  }

  /** `others`: workloads that the resources do not contain. They take the place of those with their addresses. */
  explain(asked: Omit<ExplainedPacket, "settingsOf">, others: readonly WorkloadEndpoint[] = []): Explanation {
    const { packet, source, destination, via } = asked;
    const nodes = [nodeOf(source), nodeOf(destination), via?.node];
    const [limits, ...different] = new Set([source, destination].map((end) => this.limitsAt(end.workload)));
    if (limits === undefined || different.length > 0) {
      const all = { ...this.resources, endpoints: this.replacedBy(others, this.resources.endpoints) };
      return explain({ ...asked, settingsOf: this.settingsOf }, all);
    }
    const near = this.near({ addresses: addressesOf(asked), nodes, others });
    const ends: readonly AnyEndpoint[] = [source, destination].flatMap(({ workload }) => workload ?? []);
    const policies = this.enforcedAt(limits).selecting([...ends, ...near.hostEndpoints]);
    return explain({ ...asked, packet, settingsOf: (node) => this.withoutLimits(node) }, { ...near, ...policies });
  }

  /** What one endpoint decides about a packet; a host endpoint about one of its host. */
  verdict(packet: Packet, endpoint: AnyEndpoint, direction: Direction): Judgement["verdict"] {
    const near = this.near({ addresses: [packet.source, packet.destination], nodes: [], others: [] });
    const resources = { ...near, ...this.policiesOf(endpoint), policyLimits: NO_LIMITS };
    if (endpoint.kind === "WorkloadEndpoint") return judge(packet, endpoint, direction, resources).verdict;
    const settings = this.settingsOf(endpoint.spec.node ?? "");
    return judgeInterface({ packet, endpoint, direction, isForwarded: false, settings }, resources).verdict;
  }

  /** What is enforced of the policies that select it. */
  policiesOf(endpoint: AnyEndpoint): SelectedPolicies {
    return this.enforcedAt(this.limitsAt(endpoint)).selecting([endpoint]);
  }

  /** Those that have the address. */
  membersWith(address: Address): readonly AnyMember[] {
    return membersWith(address, this.near({ addresses: [address], nodes: [], others: [] }));
  }

  private near({ addresses, nodes, others }: Place): PolicyResources {
    const keys = [...new Set(addresses.map(formatAddress))];
    const at = <Value>(index: ReadonlyMap<string, readonly Value[]>) =>
      unique(keys.flatMap((key) => index.get(key) ?? []));
    const hosts = unique(
      nodes.filter((node) => node !== undefined).flatMap((node) => this.hostsByNode.get(node) ?? []),
    );
    return {
      ...this.resources,
      endpoints: this.replacedBy(others, at(this.endpoints)),
      hostEndpoints: unique([...hosts, ...at(this.hostsByAddress)]),
      nodes: at(this.nodes),
      networkSets: this.networkSets.around(addresses),
      globalNetworkSets: this.globalNetworkSets.around(addresses),
      ...(this.resources.serviceEndpoints === undefined ? {} : { serviceEndpoints: at(this.services) }),
    };
  }

  private replacedBy(
    others: readonly WorkloadEndpoint[],
    endpoints: readonly WorkloadEndpoint[],
  ): readonly WorkloadEndpoint[] {
    if (others.length === 0) return endpoints;
    const taken = new Set(others.flatMap(addressesOfWorkload));
    return [...endpoints.filter((each) => !addressesOfWorkload(each).some((address) => taken.has(address))), ...others];
  }

  private limitsAt(endpoint: AnyEndpoint | undefined): string {
    const { node = "" } = endpoint?.spec ?? {};
    const limits = this.limits.get(node) ?? JSON.stringify(policyLimits(this.settingsOf(node)));
    this.limits.set(node, limits);
    return limits;
  }

  private enforcedAt(limits: string): EnforcedPolicies {
    const known = this.enforced.get(limits);
    if (known !== undefined) return known;
    const made = new EnforcedPolicies({ ...this.resources, policyLimits: JSON.parse(limits) });
    this.enforced.set(limits, made);
    return made;
  }

  /** The limits are those of all policies of a namespace, and have been applied to them. */
  private withoutLimits(node: string): NodeAgentSettings {
    const known = this.settings.get(node);
    if (known !== undefined) return known;
    const { lists, rules, addresses } = NO_LIMITS;
    const settings = {
      ...this.settingsOf(node),
      ...{ namespacePolicyLists: lists, namespacePolicyRules: rules, namespacePolicyAddresses: addresses },
    };
    this.settings.set(node, settings);
    return settings;
  }
}

const NO_LIMITS = { lists: Infinity, rules: Infinity, addresses: Infinity };

interface Place {
  readonly addresses: readonly Address[];
  readonly nodes: readonly (string | undefined)[];
  readonly others: readonly WorkloadEndpoint[];
}

/** What is enforced of the policies at nodes with the same limits, by the endpoints that it selects. */
class EnforcedPolicies {
  private readonly network: readonly Selecting<PolicyResources["networkPolicies"][number]>[];
  private readonly global: readonly Selecting<PolicyResources["globalNetworkPolicies"][number]>[];
  private readonly known = new WeakMap<AnyEndpoint, SelectedPolicies>();
  private readonly byLabels = new Map<string, SelectedPolicies>();

  constructor(private readonly resources: PolicyResources) {
    const selecting = <Policy extends AnyPolicy>(policy: Policy) => ({
      policy: enforcedPolicy(policy, resources) as Policy,
      selects: selectionOf(scopeOf(policy)),
    });
    this.network = resources.networkPolicies.map(selecting);
    this.global = resources.globalNetworkPolicies.map(selecting);
  }

  selecting(endpoints: readonly AnyEndpoint[]): SelectedPolicies {
    const all = endpoints.map((endpoint) => this.selectingOne(endpoint));
    const [only, ...more] = all;
    if (only !== undefined && more.length === 0) return only;
    return {
      networkPolicies: unique(all.flatMap((each) => each.networkPolicies)),
      globalNetworkPolicies: unique(all.flatMap((each) => each.globalNetworkPolicies)),
    };
  }

  private selectingOne(endpoint: AnyEndpoint): SelectedPolicies {
    const known = this.known.get(endpoint);
    if (known !== undefined) return known;
    const labels = labelsOf(endpoint, this.resources);
    const text = JSON.stringify(labels);
    const found = this.byLabels.get(text) ?? {
      networkPolicies: this.network.filter(({ selects }) => selects(labels)).map(({ policy }) => policy),
      globalNetworkPolicies: this.global.filter(({ selects }) => selects(labels)).map(({ policy }) => policy),
    };
    this.byLabels.set(text, found);
    this.known.set(endpoint, found);
    return found;
  }
}

export type SelectedPolicies = Pick<PolicyResources, "networkPolicies" | "globalNetworkPolicies">;

interface Selecting<Policy> {
  readonly policy: Policy;
  readonly selects: (labels: Labels) => boolean;
}

/** Network sets, each with those of its networks alone that contain an address. */
class SetsByNetwork<
  AnySet extends PolicyResources["networkSets"][number] | PolicyResources["globalNetworkSets"][number],
> {
  /** By family and length, then by the first address. */
  private readonly lengths = new Map<string, Map<string, { readonly set: AnySet; readonly net: string }[]>>();
  private readonly known = new Map<string, readonly { readonly set: AnySet; readonly net: string }[]>();

  constructor(sets: readonly AnySet[]) {
    for (const set of sets) {
      for (const net of set.spec.nets ?? []) {
        const prefix = parsePrefixOrAddress(net);
        if (prefix === undefined) continue;
        const { network, length } = prefix;
        const key = `${network.family} ${length}`;
        const networks = this.lengths.get(key) ?? new Map();
        this.lengths.set(key, networks);
        const first = formatAddress(prefixAround(network, length).network);
        networks.set(first, [...(networks.get(first) ?? []), { set, net }]);
      }
    }
  }

  around(addresses: readonly Address[]): readonly AnySet[] {
    const found = Map.groupBy(
      addresses.flatMap((address) => this.at(address)),
      ({ set }) => set,
    );
    return Array.from(found, ([set, nets]) => ({
      ...set,
      spec: { ...set.spec, nets: unique(nets.map(({ net }) => net)) },
    }));
  }

  private at(address: Address): readonly { readonly set: AnySet; readonly net: string }[] {
    const text = formatAddress(address);
    const known = this.known.get(text);
    if (known !== undefined) return known;
    const found = Array.from(this.lengths).flatMap(([key, networks]) => {
      const [family, length] = key.split(" ").map(Number);
      if (family !== address.family || length === undefined) return [];
      return networks.get(formatAddress(prefixAround(address, length).network)) ?? [];
    });
    this.known.set(text, found);
    return found;
  }
}

/** Whether any rule tells the port of a source from others. */
export function namedSourcePorts({
  endpoints,
  hostEndpoints,
  profiles,
  networkPolicies,
  globalNetworkPolicies,
}: PolicyResources): (port: number) => boolean {
  const rules = [...profiles, ...networkPolicies, ...globalNetworkPolicies].flatMap(
    ({ spec: { ingress = [], egress = [] } }) => [...ingress, ...egress],
  );
  const written = new Set(rules.flatMap(({ source = {} }) => portsOf(source)));
  if (written.size === 0) return () => false;
  const declared = new Set(
    [...endpoints, ...hostEndpoints].flatMap(({ spec: { ports = [] } }) => ports.map(({ port }) => port)),
  );
  const ranges = Array.from(written, (port) => String(port).split(":").map(Number));
  const hasNames = ranges.some(([first]) => Number.isNaN(first));
  return (port) =>
    (hasNames && declared.has(port)) || ranges.some(([first = 0, last = first]) => first <= port && port <= last);
}

function portsOf({ ports = [], notPorts = [] }: EntityRule): readonly (number | string)[] {
  return [...ports, ...notPorts];
}

function addressesOf({ packet, via, leavesAs }: Omit<ExplainedPacket, "settingsOf">): readonly Address[] {
  const { source, destination, beforeNat } = packet;
  const all = [source, destination, beforeNat?.source, beforeNat?.destination, via?.leavesAs, leavesAs];
  return all.filter((address) => address !== undefined);
}

function addressesOfWorkload({ spec }: WorkloadEndpoint): readonly string[] {
  return canonical(spec.ipNetworks ?? []);
}

function canonical(texts: readonly string[]): readonly string[] {
  return texts.flatMap((text) => parseInterfaceAddress(text)?.address ?? parseAddress(text) ?? []).map(formatAddress);
}

function byKeys<Value>(values: readonly Value[], keysOf: (value: Value) => readonly string[]): Map<string, Value[]> {
  const index = new Map<string, Value[]>();
  for (const value of values) {
    for (const key of new Set(keysOf(value))) {
      const others = index.get(key);
      if (others === undefined) index.set(key, [value]);
      else others.push(value);
    }
  }
  return index;
}

function unique<Value>(values: readonly Value[]): readonly Value[] {
  return values.length < 2 ? values : [...new Set(values)];
}
