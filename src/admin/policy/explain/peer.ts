/** The two ends of the packet that `policy explain` is about: a workload, a node, a host endpoint, or an address. Pure. */
import { shortContainerId } from "../../../cni/names.ts";
import { listed } from "../../../counted.ts";
import { PluginError } from "../../../errors.ts";
import { type Address, type Family, formatAddress, isSameAddress, parseAddress } from "../../../ip/address.ts";
import { parseInterfaceAddress } from "../../../ip/prefix.ts";
import { containerOf } from "../../../model/container-labels.ts";
import type { HostEndpoint } from "../../../model/host-endpoint.ts";
import { HOST_ENDPOINT } from "../../../model/kinds.ts";
import { nearestName } from "../../../model/nearest-name.ts";
import type { Node } from "../../../model/node.ts";
import { isExternal } from "../../../model/node-members.ts";
import type { WorkloadEndpoint } from "../../../model/workload-endpoint.ts";
import { quoted } from "../../../quote.ts";
import { namedBy, workloadNames } from "../../kinds/workload-names.ts";
import { UsageError } from "../../main/command.ts";

/** One end, with each address that the packet may have. */
export interface Peer {
  /** As the user wrote it. */
  readonly word: string;
  readonly places: readonly PeerPlace[];
}

export interface PeerPlace {
  readonly address: Address;
  readonly endpoint?: WorkloadEndpoint;
  /** The node that the address belongs to. */
  readonly node?: string;
  /** The one that the user named. */
  readonly hostEndpoint?: HostEndpoint;
  /** The network of the address, if its container has others of the same IP version. */
  readonly network?: string;
}

export interface KnownPeers {
  readonly endpoints: readonly WorkloadEndpoint[];
  readonly nodes: readonly Node[];
  readonly hostEndpoints: readonly HostEndpoint[];
  /** The one that the tool runs on; its Node may not have its addresses. */
  readonly thisNode?: { readonly name: string; readonly addresses: readonly Address[] };
}

/** `word`: an address, `NAMESPACE/POD`, `hostendpoint/NAME`, the ID of a container, its beginning, or its name, or the name of a node. */
export function findPeer(word: string, known: KnownPeers): Peer {
  const address = parseAddress(word);
  if (address !== undefined) return { word, places: [placeOf(address, known)] };
  const host = findHostEndpoint(word, known);
  if (host !== undefined) return host;
  const found = onlyWorkload(word, known);
  const places = found.flatMap((endpoint) => addressesOf(endpoint).map((own) => ({ address: own, endpoint })));
  if (found.length === 0) return findNode(word, known);
  const ids = [...new Set(found.map(({ spec }) => spec.containerID))];
  return ids.length === 1 ? { word, places: places.map(withNetwork) } : oneAddressEach({ word, places });
}

/** A container has an address in each of its networks. */
function withNetwork(place: EndpointPlace, _: number, all: readonly EndpointPlace[]): PeerPlace {
  const isOnly = all.filter(({ address }) => address.family === place.address.family).length === 1;
  const network = isOnly ? undefined : networkOf(place);
  return network === undefined ? place : { ...place, network };
}

type EndpointPlace = Required<Pick<PeerPlace, "address" | "endpoint">>;

function networkOf({ endpoint }: PeerPlace): string | undefined {
  return endpoint && containerOf(endpoint)?.network;
}

/** A name without its namespace is enough if no other namespace has such a workload. */
function onlyWorkload(word: string, { endpoints }: KnownPeers): readonly WorkloadEndpoint[] {
  const found = workloadsNamed(word, endpoints);
  const titles = [...new Set(found.map(qualifiedTitleOf))];
  if (titles.length < 2) return found;
  throw new UsageError(`${quoted(word)} names several workloads; give one of ${listed(titles)}`);
}

function oneAddressEach({ word, places }: Peer): Peer {
  for (const family of [4, 6]) {
    const own = places.filter((place) => place.address.family === family);
    if (own.length > 1) {
      const all = placesText(own);
      throw new UsageError(`${quoted(word)} has several IPv${family} addresses; give one of them: ${all}`);
    }
  }
  return { word, places };
}

/** With the addresses that it expects, otherwise those of its node. */
function findHostEndpoint(word: string, { hostEndpoints, nodes, endpoints }: KnownPeers): Peer | undefined {
  const [kind = "", name = ""] = word.split("/");
  if (!HOST_ENDPOINT_WORDS.has(kind.toLowerCase()) || !word.includes("/")) return undefined;
  const hostEndpoint = hostEndpoints.find(({ metadata }) => metadata.name === name);
  if (hostEndpoint === undefined) {
    // A namespace may have the same name.
    if (workloadsNamed(word, endpoints).length > 0) return undefined;
    throw unknownHostEndpoint(word, name, hostEndpoints);
  }
  const { node, expectedIPs = [] } = hostEndpoint.spec;
  const expected = expectedIPs.flatMap((text) => parseAddress(text) ?? []);
  const ofNode = nodes.filter(({ metadata }) => metadata.name === node).flatMap(nodeAddresses);
  const addresses = ([4, 6] as const).flatMap((family) => {
    const own = expected.filter((address) => address.family === family);
    return own.length > 0 ? own : ofNode.filter((address) => address.family === family).slice(0, 1);
  });
  if (addresses.length === 0) {
    throw new UsageError(
      `${quoted(word)} has no known address: neither it nor its node has one; add "expectedIPs" to it, or give an address`,
    );
  }
  const places = addresses.map((address) => ({ address, hostEndpoint, ...(node === undefined ? {} : { node }) }));
  return oneAddressEach({ word, places });
}

/** With the first of its addresses of each IP version. */
function findNode(word: string, known: KnownPeers): Peer {
  const { nodes, thisNode } = known;
  const node = nodes.find(({ metadata }) => metadata.name === word);
  if (node === undefined && thisNode?.name !== word) throw unknownWorkload(word, known);
  const all = [
    ...(node === undefined ? [] : nodeAddresses(node)),
    ...(thisNode?.name === word ? thisNode.addresses : []),
  ];
  const addresses = ([4, 6] as const).flatMap((family) => all.find((address) => address.family === family) ?? []);
  if (addresses.length === 0) throw new UsageError(`node ${quoted(word)} has no known address; give an address`);
  return { word, places: addresses.map((address) => ({ address, node: word })) };
}

const HOST_ENDPOINT_WORDS: ReadonlySet<string> = new Set([
  HOST_ENDPOINT.kind.toLowerCase(),
  HOST_ENDPOINT.plural,
  ...HOST_ENDPOINT.shortNames,
]);

function unknownHostEndpoint(word: string, name: string, hostEndpoints: readonly HostEndpoint[]): PluginError {
  const names = hostEndpoints.map(({ metadata }) => metadata.name);
  const nearest = nearestName(name, names);
  const details =
    nearest !== undefined
      ? `did you mean "hostendpoint/${nearest}"?`
      : names.length === 0
        ? "there are no host endpoints"
        : `there are: ${names.join(", ")}`;
  return new PluginError("resource-missing", `Cannot find host endpoint ${quoted(word)}`, { details });
}

/** The families that both ends have an address of; one that the user asks for must be among them. */
export function commonFamilies(from: Peer, to: Peer, wanted: Family | undefined): readonly Family[] {
  const has = ({ places }: Peer, family: Family) => places.some(({ address }) => address.family === family);
  const asked: readonly Family[] = wanted === undefined ? [4, 6] : [wanted];
  const common = asked.filter((family) => has(from, family) && has(to, family));
  if (common.length > 0) return common;
  for (const peer of [from, to]) {
    const lacking = asked.find((family) => !has(peer, family));
    if (wanted !== undefined && lacking !== undefined)
      throw new UsageError(`${quoted(peer.word)} has no IPv${lacking} address`);
  }
  throw new UsageError(`${quoted(from.word)} and ${quoted(to.word)} have no addresses of the same IP version`);
}

/** A packet between two peers. */
export interface PeerPair {
  readonly from: PeerPlace;
  readonly to: PeerPlace;
  /** Why these addresses, if a peer has others. */
  readonly notes: readonly string[];
}

/**
 * The packets that a peer may send to another. Which of its addresses a container in several networks sends from is decided by
 * its routes, which the datastore does not know; a client uses the address of the network in which both are, if there is one.
 */
export function pairsIn(source: Peer, destination: Peer, family: Family): readonly PeerPair[] {
  const [sources, all] = [source, destination].map(({ places }) =>
    places.filter(({ address }) => address.family === family),
  );
  if (sources === undefined || all === undefined) return [];
  const shared = all.filter((to) =>
    sources.some((from) => networkOf(from) !== undefined && networkOf(from) === networkOf(to)),
  );
  const destinations = shared.length === 0 ? all : shared;
  const others = all.filter((to) => !destinations.includes(to));
  const notes = [
    ...(sources.length === 1
      ? []
      : [`the routes of ${quoted(source.word)} choose its source address: ${placesText(sources)}; each is shown`]),
    ...(others.length === 0
      ? []
      : [`${quoted(destination.word)} also has ${placesText(others)}: give an address to ask about it`]),
  ];
  return sources.flatMap((from) => destinations.map((to) => ({ from, to, notes })));
}

/** `10.0.0.1 (pods), 10.0.0.5 (back)`. */
function placesText(places: readonly PeerPlace[]): string {
  return places
    .map(({ address, network }) => `${formatAddress(address)}${network === undefined ? "" : ` (${network})`}`)
    .join(", ");
}

export function placeOf(address: Address, { endpoints, nodes, hostEndpoints }: KnownPeers): PeerPlace {
  const endpoint = endpoints.find((each) => addressesOf(each).some((own) => isSameAddress(own, address)));
  const node =
    nodes.find((each) => nodeAddresses(each).some((own) => isSameAddress(own, address)))?.metadata.name ??
    hostEndpoints.find(({ spec }) => (spec.expectedIPs ?? []).some((text) => isAddress(text, address)))?.spec.node;
  return {
    address,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(node === undefined ? {} : { node }),
  };
}

function isAddress(text: string, address: Address): boolean {
  const parsed = parseAddress(text);
  return parsed !== undefined && isSameAddress(parsed, address);
}

export function addressesOf({ spec }: WorkloadEndpoint): readonly Address[] {
  return (spec.ipNetworks ?? []).flatMap((text) => parseInterfaceAddress(text)?.address ?? parseAddress(text) ?? []);
}

export function nodeAddresses({ spec }: Node): readonly Address[] {
  const { bgp, addresses = [], ipv4VXLANTunnelAddr, ipv6VXLANTunnelAddr } = spec;
  return [
    bgp?.ipv4Address,
    bgp?.ipv6Address,
    bgp?.ipv4IPIPTunnelAddr,
    ipv4VXLANTunnelAddr,
    ipv6VXLANTunnelAddr,
    ...addresses.filter((each) => !isExternal(each)).map(({ address }) => address),
  ].flatMap((text) => (text === undefined ? [] : (parseInterfaceAddress(text)?.address ?? parseAddress(text) ?? [])));
}

/** `word`: with or without a namespace. */
export function workloadsNamed(word: string, endpoints: readonly WorkloadEndpoint[]): readonly WorkloadEndpoint[] {
  const slash = word.indexOf("/");
  if (slash === -1) return namedBy(word, endpoints, workloadNames);
  const within = endpoints.filter(({ metadata }) => (metadata.namespace ?? "") === word.slice(0, slash));
  return namedBy(word.slice(slash + 1), within, workloadNames);
}

/** In output: `NAMESPACE/POD`, or the name of a container: its runtime knows no namespaces. Of an ID as much as runtimes show. */
export function titleOf(endpoint: WorkloadEndpoint): string {
  const { pod, workload, containerID } = endpoint.spec;
  if (pod !== undefined) return qualifiedTitleOf(endpoint);
  return workload ?? (containerID === undefined ? endpoint.metadata.name : shortContainerId(containerID));
}

/** With the namespace of a container, too: a pod of another namespace may have its name. */
function qualifiedTitleOf({ metadata, spec }: WorkloadEndpoint): string {
  const name = spec.pod ?? spec.workload ?? spec.containerID;
  return name === undefined ? metadata.name : `${metadata.namespace ?? ""}/${name}`;
}

function unknownWorkload(word: string, { endpoints, nodes, thisNode }: KnownPeers): PluginError {
  const titles = endpoints.map(qualifiedTitleOf);
  const names = [
    ...titles.map((title) => title.slice(title.indexOf("/") + 1)),
    ...nodes.map(({ metadata }) => metadata.name),
  ];
  const nearest = nearestName(word, word.includes("/") ? titles : names);
  const ofThisHost = thisNode === undefined ? "one of its addresses" : `"${thisNode.name}" or one of its addresses`;
  const details =
    word === "localhost"
      ? `for this host use ${ofThisHost}`
      : nearest === undefined
        ? "use NAMESPACE/POD, the ID or name of a container, the name of a node, hostendpoint/NAME, or an address; an endpoint exists while the workload is attached to the network"
        : `did you mean "${nearest}"?`;
  return new PluginError(
    "resource-missing",
    `Cannot find workload ${quoted(word)}: it has no endpoint in the datastore`,
    {
      details,
    },
  );
}
