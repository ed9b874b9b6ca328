/**
 * Everything that a packet can come from or go to: workloads, hosts, and the addresses outside, of which those stand for all others that are in
 * the same networks. Of each, one address of an IP version. Pure.
 */
import { type Address, addressOf, type Family, formatAddress, parseAddress } from "../../ip/address.ts";
import {
  formatPrefix,
  lastAddress,
  type Prefix,
  parseInterfaceAddress,
  parsePrefixOrAddress,
  prefixContains,
  prefixCovers,
} from "../../ip/prefix.ts";
import { isFinished } from "../../model/finished-pods.ts";
import type { HostEndpoint } from "../../model/host-endpoint.ts";
import { nodeAddresses } from "../../model/node-members.ts";
import type { PolicyRule } from "../../model/policy-rule.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import type { AnyEndpoint, PolicyResources } from "../judge/resources.ts";

export interface End {
  readonly kind: "workload" | "host" | "outside";
  readonly address: Address;
  /** The address. */
  readonly text: string;
  /** In each state; absent: outside, a node without a host endpoint, or one that does not exist in it. */
  readonly before?: AnyEndpoint | undefined;
  readonly after?: AnyEndpoint | undefined;
  readonly node?: string | undefined;
  /** Of addresses outside: the smallest network that has them all; absent: what no network contains. */
  readonly network?: Prefix;
}

export function endsOf(before: PolicyResources, after: PolicyResources): readonly End[] {
  const nodes = new Map((after.nodes ?? []).map((node) => [node.metadata.name, nodeAddresses(node)]));
  const workloads = pairs(before.endpoints, after.endpoints).flatMap(([former, present]) => {
    // One that only one state has cannot be compared.
    if (former === undefined || present === undefined || isFinished(present)) return [];
    const [own, now] = [addressesOfWorkload(former), addressesOfWorkload(present)];
    return own
      .filter(({ text }) => now.some((each) => each.text === text))
      .map((at) => ({ kind: "workload", ...at, before: former, after: present, node: present.spec.node }) as const);
  });
  const hosts = pairs(before.hostEndpoints, after.hostEndpoints).flatMap(([former, present]) => {
    const { spec } = present ?? former ?? {};
    if (spec === undefined) return [];
    const expected = (spec.expectedIPs ?? []).flatMap((text) => parseAddress(text) ?? []);
    const all = expected.length > 0 ? expected : oneOfEach(nodes.get(spec.node ?? "") ?? []);
    return all.map(
      (address) => ({ kind: "host", ...at(address), before: former, after: present, node: spec.node }) as const,
    );
  });
  const known = new Set([...workloads, ...hosts].map(({ text }) => text));
  const [former, present] = [before, after].map(ofAllInterfaces);
  const others = Array.from(nodes).flatMap(([node, addresses]) =>
    addresses
      .map((address) => {
        const around = { before: former?.get(node), after: present?.get(node) };
        return { kind: "host", ...at(address), ...around, node } as const;
      })
      .filter(({ text }) => !known.has(text)),
  );
  const taken = new Set([...known, ...others.map(({ text }) => text)]);
  return [...workloads, ...hosts, ...others, ...outsideEnds(networksOf([before, after]), taken)];
}

/** By node: what decides about all its addresses, also those that it does not expect. */
function ofAllInterfaces({ hostEndpoints }: PolicyResources): ReadonlyMap<string, HostEndpoint> {
  const found = hostEndpoints.filter(({ spec }) => spec.interfaceName === "*");
  const lastFirst = found.toSorted((left, right) => (left.metadata.name < right.metadata.name ? 1 : -1));
  return new Map(lastFirst.map((endpoint) => [endpoint.spec.node ?? "", endpoint]));
}

function oneOfEach(addresses: readonly Address[]): readonly Address[] {
  return ([4, 6] as const).flatMap((family) => addresses.find((address) => address.family === family) ?? []);
}

function at(address: Address): Pick<End, "address" | "text"> {
  return { address, text: formatAddress(address) };
}

function addressesOfWorkload({ spec }: WorkloadEndpoint): readonly Pick<End, "address" | "text">[] {
  return (spec.ipNetworks ?? []).flatMap((text) => {
    const address = parseInterfaceAddress(text)?.address ?? parseAddress(text);
    return address === undefined ? [] : [at(address)];
  });
}

/** The same resource in both states. */
function pairs<Endpoint extends WorkloadEndpoint | HostEndpoint>(
  before: readonly Endpoint[],
  after: readonly Endpoint[],
): readonly (readonly [Endpoint | undefined, Endpoint | undefined])[] {
  const keyOf = ({ metadata: { namespace = "", name } }: Endpoint) => `${namespace}/${name}`;
  const present = new Map(after.map((each) => [keyOf(each), each]));
  const known = new Set(before.map(keyOf));
  return [
    ...before.map((each) => [each, present.get(keyOf(each))] as const),
    ...after.filter((each) => !known.has(keyOf(each))).map((each) => [undefined, each] as const),
  ];
}

/** All that sets and rules name, and what is behind Services. */
function networksOf(states: readonly PolicyResources[]): readonly Prefix[] {
  const texts = states.flatMap((state) => [
    ...[...state.networkSets, ...state.globalNetworkSets].flatMap(({ spec }) => spec.nets ?? []),
    ...[...state.profiles, ...state.networkPolicies, ...state.globalNetworkPolicies].flatMap(({ spec }) =>
      [...(spec.ingress ?? []), ...(spec.egress ?? [])].flatMap(netsOf),
    ),
    ...(state.serviceEndpoints ?? []).flatMap(({ addresses }) => addresses),
  ]);
  const prefixes = [...new Set(texts)].flatMap((text) => parsePrefixOrAddress(text) ?? []);
  return [...new Map(prefixes.map((prefix) => [formatPrefix(prefix), prefix])).values()];
}

function netsOf({ source = {}, destination = {} }: PolicyRule): readonly string[] {
  return [source, destination].flatMap(({ nets = [], notNets = [] }) => [...nets, ...notNets]);
}

const EVERYTHING: Readonly<Record<Family, string>> = { 4: "0.0.0.0/0", 6: "::/0" };

/** An address of each network that is in no smaller one, if there is such an address. */
function outsideEnds(networks: readonly Prefix[], taken: ReadonlySet<string>): readonly End[] {
  return ([4, 6] as const).flatMap((family) => {
    const root = parsePrefixOrAddress(EVERYTHING[family]);
    const own = networks.filter(({ network }) => network.family === family).sort(compareNetworks);
    const all = root === undefined || own.some(({ length }) => length === 0) ? own : [root, ...own];
    return all.flatMap((network, index): readonly End[] => {
      const within: Prefix[] = [];
      for (let next = index + 1; next < all.length; next += 1) {
        const inner = all[next];
        if (inner === undefined || !prefixCovers(network, inner)) break;
        // Those inside a smaller one are skipped with it.
        const last = within.at(-1);
        if (last === undefined || !prefixCovers(last, inner)) within.push(inner);
      }
      const address = freeAddress(network, within, taken);
      if (address === undefined) return [];
      return [{ kind: "outside", ...at(address), ...(network.length === 0 ? {} : { network }) }];
    });
  });
}

/** Each before those that it contains. */
function compareNetworks(left: Prefix, right: Prefix): number {
  if (left.network.value !== right.network.value) return left.network.value < right.network.value ? -1 : 1;
  return left.length - right.length;
}

function freeAddress(network: Prefix, within: readonly Prefix[], taken: ReadonlySet<string>): Address | undefined {
  const { family } = network.network;
  const last = lastAddress(network).value;
  const inner = [...within];
  let value = network.network.value;
  // Addresses that look usual, where there are any: not the first of the Internet.
  if (network.length === 0 && inner.every((each) => !prefixContains(each, USUAL[family]))) value = USUAL[family].value;
  while (value <= last) {
    const address = addressOf(family, value);
    if (address === undefined) return undefined;
    const around = inner.find((each) => prefixContains(each, address));
    if (around !== undefined) value = lastAddress(around).value + 1n;
    else if (taken.has(formatAddress(address))) value += 1n;
    else return address;
  }
  return undefined;
}

const USUAL: Readonly<Record<Family, Address>> = {
  4: parseAddress("198.51.100.1") ?? { family: 4, value: 1n },
  6: parseAddress("2001:db8::1") ?? { family: 6, value: 1n },
};
