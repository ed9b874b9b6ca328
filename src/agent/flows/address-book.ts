/**
 * Who has an address: a pod, a container, a host, a Service, or a network set that contains it. Kept from the changes of the
 * records, so that each question is one lookup. Exists only while flows are switched on.
 *
 * Of several that have an address, a workload comes first (one of this node, one that has not ended), then a host, then the
 * most specific network of a network set. A workload that is gone keeps its name for some seconds, unless another one has its
 * address: its last connections are asked for after it.
 */
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import type { EndName } from "../../flows/collector-messages.ts";
import { nameOfWorkload, ownLabels } from "../../flows/flow-packet.ts";
import { type Address, formatAddress, parseAddress } from "../../ip/address.ts";
import { parsePrefixOrAddress } from "../../ip/prefix.ts";
import { type ContainerLabels, inheritedContainerLabels } from "../../model/container-labels.ts";
import { isFinished } from "../../model/finished-pods.ts";
import type { GlobalNetworkSet } from "../../model/global-network-set.ts";
import { ALL_INTERFACES, type HostEndpoint } from "../../model/host-endpoint.ts";
import type { NetworkSet } from "../../model/network-set.ts";
import type { Node } from "../../model/node.ts";
import { ownerOfEndpoint } from "../../model/pod-owner.ts";
import type { ServiceAddresses } from "../../model/service-addresses.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { Holders, NetworkIndex } from "./holders.ts";
import {
  endpointAddresses,
  expectedAddresses,
  nodeAddresses,
  nodePortsOf,
  serviceKeysOf,
} from "./recorded-addresses.ts";

/** The kinds of records that say who has an address. */
export const NAMED_KINDS = [
  ...(["endpoints", "containerLabels", "hostEndpoints"] as const),
  ...(["nodes", "networkSets", "globalNetworkSets"] as const),
] as const satisfies readonly (keyof NamedValues)[];

export interface NamedValues {
  readonly endpoints: WorkloadEndpoint;
  readonly containerLabels: ContainerLabels;
  readonly hostEndpoints: HostEndpoint;
  readonly nodes: Node;
  readonly networkSets: NetworkSet;
  readonly globalNetworkSets: GlobalNetworkSet;
}

export type NamedChange =
  | {
      readonly [Kind in keyof NamedValues]: { readonly of: Kind; readonly change: RecordChange<NamedValues[Kind]> };
    }[keyof NamedValues]
  | { readonly of: "services"; readonly change: RecordChange<ServiceAddresses> };

type AnySet = NetworkSet | GlobalNetworkSet;

const OUTSIDE: EndName = { kind: "outside" };
/** How long a workload that is gone keeps its name. */
const FORMER_MILLISECONDS = 10_000;

export class AddressBook {
  private readonly endpoints = new Holders<WorkloadEndpoint>();
  /** Workloads that are gone, since when. */
  private readonly former = new Map<string, { readonly endpoint: WorkloadEndpoint; readonly since: number }>();
  private readonly nodes = new Holders<string>();
  private readonly hostEndpoints = new Holders<HostEndpoint>();
  /** With all interfaces of their node, by node. */
  private readonly allInterfaces = new Map<string, HostEndpoint>();
  private readonly sets = new NetworkIndex<AnySet>();
  /** By `serviceKey()`. */
  private readonly services = new Map<string, ServiceAddresses>();
  /** By protocol and port. */
  private readonly nodePorts = new Map<string, ServiceAddresses>();
  private readonly labels = new Map<string, ContainerLabels>();
  private allLabels: readonly ContainerLabels[] | undefined;
  private ownAddresses: ReadonlySet<string> = new Set();
  private readonly local = new Map<string, number>();
  /** By address, all that was asked for. */
  private readonly asked = new Map<string, Set<string>>();
  private askedKeys = 0;

  /**
   * `changed`: called with each key whose name may be another one, if it was asked for or is of this node. `mostAsked`: more
   * keys are answered, but their changes are not told.
   */
  constructor(
    private readonly options: {
      readonly node: string;
      readonly elapsed: () => number;
      readonly changed: (key: string) => void;
      readonly mostAsked: number;
    },
  ) {}

  get size(): number {
    return this.endpoints.size;
  }

  /** All addresses of this node. */
  get localAddresses(): readonly string[] {
    return [...new Set([...this.local.keys(), ...this.ownAddresses])];
  }

  /** From now on changes of the name are told. */
  ask(key: string): void {
    if (this.askedKeys >= this.options.mostAsked) return;
    const address = addressIn(key);
    const known = this.asked.get(address);
    if (known?.has(key)) return;
    this.askedKeys += 1;
    if (known === undefined) this.asked.set(address, new Set([key]));
    else known.add(key);
  }

  forget(key: string): void {
    const address = addressIn(key);
    const known = this.asked.get(address);
    if (known?.delete(key) !== true) return;
    this.askedKeys -= 1;
    if (known.size === 0) this.asked.delete(address);
  }

  /** `key`: an address, or `serviceKey()`, which names who has the address if it is no port of a Service. */
  nameOf(key: string): EndName {
    const [address = "", protocol, port] = key.split(" ");
    if (protocol !== undefined && port !== undefined) {
      const service = this.services.get(key) ?? this.servedByNode(address, `${protocol} ${port}`);
      if (service !== undefined) return { kind: "service", namespace: service.namespace, name: service.name };
    }
    const endpoint = this.endpointAt(address);
    if (endpoint !== undefined) return this.nameOfEndpoint(endpoint);
    return this.hostAt(address) ?? this.setAround(address) ?? OUTSIDE;
  }

  /** The addresses that interfaces of this host have now. */
  setOwnAddresses(addresses: readonly Address[]): void {
    const before = this.ownAddresses;
    this.ownAddresses = new Set(addresses.map(formatAddress));
    for (const address of before.symmetricDifference(this.ownAddresses)) this.tell(address, "local");
  }

  take({ of, change }: NamedChange): void {
    switch (of) {
      case "endpoints":
        this.takeEndpoint(change);
        break;
      case "nodes":
        this.takeAddresses(this.nodes, change, nodeAddresses, ({ metadata }) => metadata.name);
        break;
      case "hostEndpoints":
        this.takeHostEndpoint(change);
        break;
      case "networkSets":
      case "globalNetworkSets":
        this.takeSet(change);
        break;
      case "containerLabels":
        this.takeLabels(change);
        break;
      case "services":
        this.takeService(change);
        break;
    }
  }

  /** Names of workloads that are gone long enough end. */
  expire(): void {
    const latest = this.options.elapsed() - FORMER_MILLISECONDS;
    for (const [address, { since, endpoint }] of this.former) {
      if (since > latest) return;
      this.former.delete(address);
      this.tell(address, this.isLocal(endpoint) ? "local" : "remote");
    }
  }

  private isLocal({ spec }: WorkloadEndpoint): boolean {
    return spec.node === this.options.node;
  }

  private endpointAt(address: string): WorkloadEndpoint | undefined {
    const [first, ...others] = this.endpoints.at(address);
    if (others.length === 0) return first ?? this.former.get(address)?.endpoint;
    return [first, ...others]
      .filter((each) => each !== undefined)
      .toSorted((left, right) => this.rankOf(left) - this.rankOf(right) || (nameIn(left) < nameIn(right) ? -1 : 1))[0];
  }

  private rankOf(endpoint: WorkloadEndpoint): number {
    return (isFinished(endpoint) ? 2 : 0) + (this.isLocal(endpoint) ? 0 : 1);
  }

  private nameOfEndpoint(endpoint: WorkloadEndpoint): EndName {
    const { spec } = endpoint;
    const named = nameOfWorkload(endpoint);
    const owner = named.kind === "pod" ? ownerOfEndpoint(endpoint) : undefined;
    const labels = this.labelsOf(endpoint);
    return {
      ...named,
      ...(owner === undefined ? {} : { owner }),
      ...(labels === undefined ? {} : { labels }),
      ...(spec.node === undefined ? {} : { node: spec.node }),
      ...(this.isLocal(endpoint) ? { isLocal: true } : {}),
      endpoint: JSON.stringify(endpoint),
    };
  }

  private labelsOf(endpoint: WorkloadEndpoint): EndName["labels"] {
    if (this.labels.size === 0) return ownLabels(endpoint.metadata.labels);
    this.allLabels ??= [...this.labels.values()];
    return ownLabels({ ...endpoint.metadata.labels, ...inheritedContainerLabels(endpoint, this.allLabels) });
  }

  private servedByNode(address: string, port: string): ServiceAddresses | undefined {
    const service = this.nodePorts.get(port);
    return service !== undefined && this.hostAt(address) !== undefined ? service : undefined;
  }

  private hostAt(address: string): EndName | undefined {
    const [endpoint] = this.hostEndpoints.at(address);
    const isOwn = this.ownAddresses.has(address);
    const node = isOwn ? this.options.node : (this.nodes.at(address)[0] ?? endpoint?.spec.node);
    if (node === undefined) return undefined;
    const labels = ownLabels((endpoint ?? this.allInterfaces.get(node))?.metadata.labels);
    return {
      ...{ kind: "host", name: node, node },
      ...(labels === undefined ? {} : { labels }),
      ...(node === this.options.node ? { isLocal: true } : {}),
    };
  }

  private setAround(text: string): EndName | undefined {
    const address = parseAddress(text);
    const sets = address === undefined ? [] : this.sets.around(address);
    const [first] = sets.toSorted((left, right) => (titleOf(left) < titleOf(right) ? -1 : 1));
    if (first === undefined) return undefined;
    const { name, namespace } = first.metadata;
    const labels = ownLabels(first.metadata.labels);
    return {
      ...{ kind: "network set", name },
      ...(namespace === undefined ? {} : { namespace }),
      ...(labels === undefined ? {} : { labels }),
    };
  }

  private takeEndpoint(change: RecordChange<WorkloadEndpoint>): void {
    const { previous } = change;
    const next = change.kind === "put" ? change.value : undefined;
    const [before, after] = [previous, next].map((each) => (each === undefined ? [] : endpointAddresses(each)));
    const place = [previous, next].some((each) => each !== undefined && this.isLocal(each)) ? "local" : "remote";
    for (const address of before ?? []) {
      if (previous !== undefined) this.endpoints.remove(address, previous);
      if (previous !== undefined && this.isLocal(previous)) this.countLocal(address, -1);
      if (previous !== undefined && after?.includes(address) !== true) this.noteFormer(address, previous);
    }
    for (const address of after ?? []) {
      if (next === undefined) continue;
      this.endpoints.add(address, next);
      this.former.delete(address);
      if (this.isLocal(next)) this.countLocal(address, 1);
    }
    for (const address of new Set([...(before ?? []), ...(after ?? [])])) this.tell(address, place);
  }

  /** Maps keep the order in which their keys were added, so the oldest is the first. */
  private noteFormer(address: string, endpoint: WorkloadEndpoint): void {
    this.former.delete(address);
    this.former.set(address, { endpoint, since: this.options.elapsed() });
  }

  private countLocal(address: string, by: number): void {
    const count = (this.local.get(address) ?? 0) + by;
    if (count <= 0) this.local.delete(address);
    else this.local.set(address, count);
  }

  private takeHostEndpoint(change: RecordChange<HostEndpoint>): void {
    this.takeAddresses(this.hostEndpoints, change, expectedAddresses, (endpoint) => endpoint);
    const next = change.kind === "put" ? change.value : undefined;
    for (const each of [change.previous, next]) {
      const { node, interfaceName } = each?.spec ?? {};
      if (each === undefined || node === undefined || interfaceName !== ALL_INTERFACES) continue;
      if (each === next) this.allInterfaces.set(node, each);
      else if (this.allInterfaces.get(node) === each) this.allInterfaces.delete(node);
      for (const address of this.asked.keys()) if (this.hostAt(address)?.name === node) this.tell(address, "remote");
      if (node === this.options.node) for (const address of this.ownAddresses) this.tell(address, "local");
    }
  }

  private takeAddresses<Value extends { readonly metadata: { readonly name: string } }, Held>(
    holders: Holders<Held>,
    change: RecordChange<Value>,
    addressesOf: (value: Value) => readonly string[],
    held: (value: Value) => Held,
  ): void {
    const { previous } = change;
    const next = change.kind === "put" ? change.value : undefined;
    const [before, after] = [previous, next].map((each) => (each === undefined ? [] : addressesOf(each)));
    for (const address of before ?? []) if (previous !== undefined) holders.remove(address, held(previous));
    for (const address of after ?? []) if (next !== undefined) holders.add(address, held(next));
    for (const address of new Set([...(before ?? []), ...(after ?? [])])) this.tell(address, "remote");
  }

  private takeSet(change: RecordChange<AnySet>): void {
    const { previous } = change;
    const next = change.kind === "put" ? change.value : undefined;
    const networksOf = (set: AnySet | undefined) =>
      (set?.spec.nets ?? []).flatMap((text) => parsePrefixOrAddress(text) ?? []);
    for (const network of networksOf(previous)) if (previous !== undefined) this.sets.remove(network, previous);
    for (const network of networksOf(next)) if (next !== undefined) this.sets.add(network, next);
    const changed = new NetworkIndex<true>();
    for (const network of [...networksOf(previous), ...networksOf(next)]) changed.add(network, true);
    for (const text of this.asked.keys()) {
      const address = parseAddress(text);
      if (address !== undefined && changed.around(address).length > 0) this.tell(text, "remote");
    }
  }

  private takeLabels({ key, ...change }: RecordChange<ContainerLabels>): void {
    if (change.kind === "put") this.labels.set(key, change.value);
    else this.labels.delete(key);
    this.allLabels = undefined;
    for (const address of this.local.keys()) this.tell(address, "local");
    for (const address of this.asked.keys()) if (this.endpoints.at(address).length > 0) this.tell(address, "remote");
  }

  private takeService(change: RecordChange<ServiceAddresses>): void {
    const { previous } = change;
    const next = change.kind === "put" ? change.value : undefined;
    const keys = [previous, next].flatMap((service) => (service === undefined ? [] : serviceKeysOf(service)));
    const ports = [previous, next].flatMap((service) => (service === undefined ? [] : nodePortsOf(service)));
    if (previous !== undefined) {
      for (const key of serviceKeysOf(previous)) if (this.services.get(key) === previous) this.services.delete(key);
      for (const port of nodePortsOf(previous)) if (this.nodePorts.get(port) === previous) this.nodePorts.delete(port);
    }
    if (next !== undefined) {
      for (const key of serviceKeysOf(next)) this.services.set(key, next);
      for (const port of nodePortsOf(next)) this.nodePorts.set(port, next);
    }
    for (const key of new Set(keys)) if (this.asked.get(addressIn(key))?.has(key)) this.options.changed(key);
    if (ports.length === 0) return;
    for (const [address, asked] of this.asked) {
      for (const key of asked) if (ports.includes(key.slice(address.length + 1))) this.options.changed(key);
    }
  }

  private tell(address: string, place: "local" | "remote"): void {
    const asked = this.asked.get(address);
    for (const key of asked ?? []) this.options.changed(key);
    if (place === "local" && asked?.has(address) !== true) this.options.changed(address);
  }
}

function nameIn({ metadata }: WorkloadEndpoint): string {
  return metadata.name;
}

function titleOf({ metadata: { name, namespace } }: AnySet): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** Also in a key with protocol and port. */
function addressIn(key: string): string {
  const end = key.indexOf(" ");
  return end < 0 ? key : key.slice(0, end);
}
