/** What selectors can select: endpoints and network sets, with the addresses that they stand for. Pure. */

import { identity } from "../../identity.ts";
import { type Address, addressBits, parseAddress } from "../../ip/address.ts";
import { type Prefix, parseInterfaceAddress, parsePrefixOrAddress } from "../../ip/prefix.ts";
import { targetsOf } from "../../model/container-labels.ts";
import { isFinished } from "../../model/finished-pods.ts";
import type { GlobalNetworkSet } from "../../model/global-network-set.ts";
import type { HostEndpoint } from "../../model/host-endpoint.ts";
import type { NetworkSet } from "../../model/network-set.ts";
import type { Node } from "../../model/node.ts";
import { nodeAddresses, nodeLabels } from "../../model/node-members.ts";
import { protocolNumber } from "../../model/protocols.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import type { Labels } from "../../selector/selector.ts";
import { type LabelledEntity, namedPort, type Weight } from "./label-index.ts";

export interface Entity extends LabelledEntity {
  readonly weight: Weight;
  readonly addresses: readonly Address[];
  /** Networks of more than one address. */
  readonly prefixes: readonly Prefix[];
  readonly ports: readonly EntityPort[];
  /** Only selectors of nodes select it. */
  readonly isNode?: true;
}

export interface EntityPort {
  readonly name: string;
  readonly protocol: number;
  readonly port: number;
}

const NONE: readonly never[] = [];

/** Of the labels that endpoints inherit from their namespace and their service account, and of those of nodes. */
const INHERITED = /^pc(ns|sa|no)\./;

/** Without those that only a profile or a node may give: otherwise the author of a pod could choose the labels of its namespace. */
function ownLabels(labels: Labels = {}): Labels {
  const names = Object.keys(labels);
  if (!names.some((name) => INHERITED.test(name))) return labels;
  return Object.fromEntries(Object.entries(labels).filter(([name]) => !INHERITED.test(name)));
}

/** Most pods of a large cluster are not selected on a node: the addresses of a pod are only read when they are needed. */
class WorkloadEntity implements Entity {
  readonly prefixes = NONE;

  constructor(
    readonly labels: Labels,
    private readonly endpoint: WorkloadEndpoint,
  ) {}

  get parents(): readonly string[] {
    return this.endpoint.spec.profiles ?? NONE;
  }

  get givers(): readonly string[] {
    return targetsOf(this.endpoint);
  }

  get addresses(): readonly Address[] {
    return addressesOfEndpoint(this.endpoint);
  }

  get ports(): readonly EntityPort[] {
    return portsOf(this.endpoint.spec.ports);
  }

  get weight(): Weight {
    return weightOfEndpoint(this.endpoint);
  }
}

/** Most pods have the same one. */
const WEIGHTS = new Map<string, Weight>();

function weightOf(addresses: number, ports: WorkloadEndpoint["spec"]["ports"]): Weight {
  let text = `${addresses}`;
  for (const { name, protocol } of ports ?? NONE) {
    // With the length of the name, so that no name can look like two.
    if (name !== undefined) text += ` ${protocolNumber(protocol)} ${name.length} ${name}`;
  }
  const known = WEIGHTS.get(text) ?? newWeight(addresses, portsOf(ports));
  if (WEIGHTS.size < MOST_WEIGHTS) WEIGHTS.set(text, known);
  return known;
}

function newWeight(addresses: number, ports: readonly EntityPort[]): Weight {
  const named = new Map<string, number>();
  for (const { protocol, name } of ports) {
    const port = namedPort(protocol, name);
    named.set(port, (named.get(port) ?? 0) + addresses);
  }
  return { addresses, ports: addresses * ports.length, named };
}

const MOST_WEIGHTS = 1_000;

/** Without reading its addresses. */
function weightOfEndpoint({ spec: { ipNetworks, ports }, status }: WorkloadEndpoint): Weight {
  return isFinished({ status }) ? weightOf(0, undefined) : weightOf(ipNetworks?.length ?? 0, ports);
}

/** Those that policies know it by; none if its pod has finished. */
export function addressesOfEndpoint({ spec, status }: WorkloadEndpoint): readonly Address[] {
  return (isFinished({ status }) ? [] : (spec.ipNetworks ?? [])).flatMap(
    (text) => parseInterfaceAddress(text)?.address ?? parseAddress(text) ?? [],
  );
}

export function workloadEntity(endpoint: WorkloadEndpoint): Entity {
  return new WorkloadEntity(ownLabels(endpoint.metadata.labels), endpoint);
}

export function hostEntity({ metadata, spec }: HostEndpoint): Entity {
  return {
    labels: ownLabels(metadata.labels),
    parents: spec.profiles ?? [],
    addresses: (spec.expectedIPs ?? []).flatMap((text) => parseAddress(text) ?? []),
    prefixes: NONE,
    ports: portsOf(spec.ports),
    weight: weightOf(spec.expectedIPs?.length ?? 0, spec.ports),
  };
}

/** A network set of a namespace has the labels of the namespace, like a pod in it. */
export function networkSetEntity({ metadata, spec }: NetworkSet | GlobalNetworkSet): Entity {
  const { namespace } = metadata;
  const own = ownLabels(metadata.labels);
  const nets = (spec.nets ?? []).flatMap((text) => parsePrefixOrAddress(text) ?? []);
  const isSingle = ({ network, length }: Prefix) => length === addressBits(network.family);
  return {
    labels: namespace === undefined ? own : { ...own, [`${identity.labelPrefix}namespace`]: namespace },
    parents: namespace === undefined ? [] : [`kns.${namespace}`],
    addresses: nets.filter(isSingle).map(({ network }) => network),
    prefixes: nets.filter((prefix) => !isSingle(prefix)),
    ports: NONE,
    // The kernel has an element for each end of a network.
    weight: weightOf(2 * nets.length, undefined),
  };
}

/** Only policies of the cluster select nodes, and those have no limits for which it would count. */
export function nodeEntity(node: Node): Entity {
  return {
    ...{ labels: nodeLabels(node), parents: NONE, addresses: nodeAddresses(node), prefixes: NONE, ports: NONE },
    weight: weightOf(0, undefined),
    isNode: true,
  };
}

function portsOf(ports: WorkloadEndpoint["spec"]["ports"]): readonly EntityPort[] {
  return ports === undefined
    ? NONE
    : ports.flatMap(({ name, protocol, port }) => {
        const number = protocolNumber(protocol);
        return name === undefined || number === undefined ? [] : [{ name, protocol: number, port }];
      });
}
