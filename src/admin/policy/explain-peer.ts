/** The two ends of the packet that `policy explain` is about: a workload, or an address. Pure. */
import { PluginError } from "../../errors.ts";
import { type Address, type Family, formatAddress, isSameAddress, parseAddress } from "../../ip/address.ts";
import { parseInterfaceAddress } from "../../ip/prefix.ts";
import { nearestName } from "../../model/nearest-name.ts";
import type { Node } from "../../model/node.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { quoted } from "../../quote.ts";
import { UsageError } from "../command.ts";

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
}

export interface KnownPeers {
  readonly endpoints: readonly WorkloadEndpoint[];
  readonly nodes: readonly Node[];
}

/** `word`: an address, `NAMESPACE/POD`, or the ID of a container, its beginning, or its name. */
export function findPeer(word: string, known: KnownPeers): Peer {
  const address = parseAddress(word);
  if (address !== undefined) return { word, places: [placeOf(address, known)] };
  const found = known.endpoints.filter((endpoint) => isNamed(endpoint, word));
  const places = found.flatMap((endpoint) => addressesOf(endpoint).map((own) => ({ address: own, endpoint })));
  if (found.length === 0) throw unknownWorkload(word, known);
  for (const family of [4, 6]) {
    const own = places.filter((place) => place.address.family === family);
    if (own.length > 1) {
      const all = own.map((place) => formatAddress(place.address)).join(", ");
      throw new UsageError(`${quoted(word)} has several IPv${family} addresses; give one of them: ${all}`);
    }
  }
  return { word, places };
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

export function placeIn({ places }: Peer, family: Family): PeerPlace {
  const place = places.find(({ address }) => address.family === family);
  if (place === undefined) throw new PluginError("internal", `No IPv${family} address`);
  return place;
}

function placeOf(address: Address, { endpoints, nodes }: KnownPeers): PeerPlace {
  const endpoint = endpoints.find((each) => addressesOf(each).some((own) => isSameAddress(own, address)));
  const node = nodes.find((each) => nodeAddresses(each).some((own) => isSameAddress(own, address)));
  return {
    address,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(node === undefined ? {} : { node: node.metadata.name }),
  };
}

function addressesOf({ spec }: WorkloadEndpoint): readonly Address[] {
  return (spec.ipNetworks ?? []).flatMap((text) => parseInterfaceAddress(text)?.address ?? parseAddress(text) ?? []);
}

function nodeAddresses({ spec }: Node): readonly Address[] {
  const { bgp, addresses = [], ipv4VXLANTunnelAddr, ipv6VXLANTunnelAddr } = spec;
  return [
    bgp?.ipv4Address,
    bgp?.ipv6Address,
    bgp?.ipv4IPIPTunnelAddr,
    ipv4VXLANTunnelAddr,
    ipv6VXLANTunnelAddr,
    ...addresses.map(({ address }) => address),
  ].flatMap((text) => (text === undefined ? [] : (parseInterfaceAddress(text)?.address ?? parseAddress(text) ?? [])));
}

function isNamed(endpoint: WorkloadEndpoint, word: string): boolean {
  const { containerID = "", workload, pod } = endpoint.spec;
  if (word.includes("/")) return titlesOf(endpoint).includes(word);
  return pod === undefined && (workload === word || (word !== "" && containerID.startsWith(word)));
}

/** `NAMESPACE/POD`, or `NAMESPACE/CONTAINER`. */
export function titleOf(endpoint: WorkloadEndpoint): string {
  return titlesOf(endpoint)[0] ?? endpoint.metadata.name;
}

function titlesOf({ metadata, spec }: WorkloadEndpoint): readonly string[] {
  const { pod, workload, containerID } = spec;
  const names = pod === undefined ? [workload, containerID] : [pod];
  return names.flatMap((name) => (name === undefined ? [] : [`${metadata.namespace ?? ""}/${name}`]));
}

function unknownWorkload(word: string, { endpoints }: KnownPeers): PluginError {
  const titles = endpoints.map(titleOf);
  const candidates = word.includes("/") ? titles : titles.map((title) => title.slice(title.indexOf("/") + 1));
  const isOnlyPod = titles.find((title) => !word.includes("/") && title.endsWith(`/${word}`));
  const nearest = isOnlyPod ?? nearestName(word, candidates);
  const details =
    nearest === undefined
      ? "use NAMESPACE/POD, the ID or name of a container, or an address; an endpoint exists while the workload is attached to the network"
      : `did you mean "${nearest}"?`;
  return new PluginError(
    "resource-missing",
    `Cannot find workload ${quoted(word)}: it has no endpoint in the datastore`,
    {
      details,
    },
  );
}
