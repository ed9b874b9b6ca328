/** Where a packet really goes, and from where it seems to come, after host ports, Services, floating IPs and masquerading. Pure. */
import { type Address, formatAddress, isSameAddress, parseAddress } from "../../../ip/address.ts";
import { prefixContains } from "../../../ip/prefix.ts";
import { poolPrefix } from "../../../model/ip-pool.ts";
import { protocolNumber } from "../../../model/protocols.ts";
import type { WorkloadEndpoint } from "../../../model/workload-endpoint.ts";
import type { Packet } from "../../../policy/judge/packet.ts";
import { quoted } from "../../../quote.ts";
import type { NatFacts, ServicePort, ThisHost } from "./nat-facts.ts";
import { addressesOf, type PeerPlace } from "./peer.ts";

/** What the destination of a packet becomes. */
export interface Target {
  readonly address: Address;
  readonly port: number | undefined;
  /** `published port of node "n"`, `Service shop/web`, `floating IP`. */
  readonly by: string;
  /** The node that rewrites it. Absent: that of the source. */
  readonly node?: string;
  /** That node puts its own address in the place of the source if it sends the packet to another node. */
  readonly hidesSource?: true;
}

export interface Followed {
  /** Several backends of a Service; none: the destination is not rewritten. */
  readonly targets: readonly Target[];
  /** What could not be followed, in words. */
  readonly note?: string;
}

interface Known {
  readonly from: PeerPlace;
  readonly endpoints: readonly WorkloadEndpoint[];
  readonly here: ThisHost;
  readonly facts: NatFacts;
}

export function followDestination(packet: Packet, to: PeerPlace, known: Known): Followed {
  if (to.endpoint !== undefined || to.hostEndpoint !== undefined) return { targets: [] };
  const service = serviceAt(packet, to, known);
  if (service !== undefined) return followService(packet, to, { ...known, service });
  const targets =
    [recordedTargets, floatingTargets].map((find) => find(packet, to, known)).find((found) => found.length > 0) ?? [];
  const note = targets.length > 0 ? undefined : unknownNote(packet, to, known);
  return { targets, ...(note === undefined ? {} : { note }) };
}

/** Whether the address is one of this host, its loopback included. */
export function isHere(address: Address, { addresses }: ThisHost): boolean {
  return isLoopback(address) || addresses.some((own) => isSameAddress(own, address));
}

export function isLoopback({ family, value }: Address): boolean {
  return family === 4 ? value >> 24n === 127n : value === 1n;
}

function serviceAt({ destination, destinationPort, protocol }: Packet, to: PeerPlace, { facts, here }: Known) {
  const isNode = to.node !== undefined || isHere(destination, here);
  return facts.services.find(
    (each) =>
      each.protocol === protocol &&
      ((each.port === destinationPort && each.addresses.some((own) => isSameAddress(own, destination))) ||
        (isNode && each.nodePort === destinationPort)),
  );
}

/** Its own addresses are rewritten by the node of the client, node ports by the node that has the address. */
function followService(
  { destination }: Packet,
  to: PeerPlace,
  { service: found, from, endpoints }: Known & { readonly service: ServicePort },
): Followed {
  const { service, backends, isLocal } = found;
  const isNodePort = !found.addresses.some((own) => isSameAddress(own, destination));
  const node = isNodePort ? to.node : undefined;
  const isOutside = nodeOfPlace(from) === undefined;
  const at = isNodePort
    ? { ...(node === undefined ? {} : { node }), ...(isLocal ? {} : { hidesSource: true as const }) }
    : {};
  const targets = backends
    .filter(({ address }) => address.family === destination.family)
    .filter(({ address }) => !isLocal || node === undefined || nodeOfBackend(address, endpoints) === node)
    .map((backend): Target => ({ ...backend, by: `Service ${service}`, ...at }));
  if (targets.length === 0) {
    const where = isLocal && node !== undefined ? ` on node ${quoted(node)}` : "";
    const why = where === "" ? "" : " (externalTrafficPolicy Local)";
    return {
      targets,
      note: `Service ${service} has no backend${where} that is ready${why}: nothing answers, whatever policies say`,
    };
  }
  return isOutside && !isNodePort && !isLocal ? { targets, note: UNKNOWN_ENTRY } : { targets };
}

const UNKNOWN_ENTRY =
  "the node where it enters is not known: its host endpoints are not judged, and kube-proxy there may replace the client's address by its own";

export function nodeOfPlace({ endpoint, node }: PeerPlace): string | undefined {
  return endpoint?.spec.node ?? node;
}

function nodeOfBackend(address: Address, endpoints: readonly WorkloadEndpoint[]): string | undefined {
  return endpoints.find((each) => addressesOf(each).some((own) => isSameAddress(own, address)))?.spec.node;
}

/** Ports of this host, as its plugin recorded them, and those of pods of any node, as their endpoints say. */
function recordedTargets({ destination, destinationPort, protocol }: Packet, to: PeerPlace, known: Known) {
  const ofHost = isHere(destination, known.here) ? known.here.hostPorts : [];
  const published = ofHost.find(
    (each) =>
      each.protocol === protocol &&
      each.hostPort === destinationPort &&
      each.address.family === destination.family &&
      (each.hostAddress.value === 0n || isSameAddress(each.hostAddress, destination)),
  );
  const by = to.node === undefined ? "published port of this host" : `published port of node ${quoted(to.node)}`;
  if (published !== undefined) {
    const node = to.node ?? nodeOfBackend(published.address, known.endpoints);
    return [{ address: published.address, port: published.port, by, ...(node === undefined ? {} : { node }) }];
  }
  const at = to.node === undefined ? {} : { node: to.node };
  return known.endpoints
    .filter(({ spec }) => to.node !== undefined && spec.node === to.node)
    .flatMap((endpoint) => {
      const address = addressesOf(endpoint).find(({ family }) => family === destination.family);
      const port = (endpoint.spec.ports ?? []).find(
        (each) =>
          each.hostPort === destinationPort &&
          protocolNumber(each.protocol) === protocol &&
          isOpenAt(each.hostIP, destination),
      );
      return address === undefined || port === undefined ? [] : [{ address, port: port.port, by, ...at }];
    })
    .slice(0, 1);
}

function isOpenAt(hostIp: string | undefined, address: Address): boolean {
  const own = parseAddress(hostIp ?? "");
  return own === undefined || (own.family === address.family && (own.value === 0n || isSameAddress(own, address)));
}

function floatingTargets({ destination, destinationPort }: Packet, _: PeerPlace, { endpoints }: Known) {
  return endpoints
    .flatMap(({ spec: { node, ipNATs = [] } }) => ipNATs.map((each) => ({ ...each, node })))
    .flatMap(({ externalIP, internalIP, node }): readonly Target[] => {
      const [external, address] = [parseAddress(externalIP), parseAddress(internalIP)];
      if (external === undefined || address === undefined || !isSameAddress(external, destination)) return [];
      return [{ address, port: destinationPort, by: "floating IP", ...(node === undefined ? {} : { node }) }];
    })
    .slice(0, 1);
}

function unknownNote({ destination, destinationPort }: Packet, { node }: PeerPlace, { facts, here }: Known) {
  if (destinationPort === undefined) return undefined;
  if (facts.unreadServices !== undefined) return `Services are not followed: ${facts.unreadServices}`;
  const isOwn = isHere(destination, here);
  if (isOwn && here.unreadPorts !== undefined) {
    return `published ports of this host are not followed: their records cannot be read: ${here.unreadPorts}`;
  }
  if (node === undefined || isOwn || facts.areHostPortsRecorded) return undefined;
  return `published ports of node ${quoted(node)} are not followed here; ask on that host, or name the container`;
}

/** Pools with natOutgoing hide the address of a workload from everybody outside all pools. */
export function masqueradedBy(packet: Packet, from: PeerPlace, to: PeerPlace, { pools }: NatFacts): string | undefined {
  if (from.endpoint === undefined || to.endpoint !== undefined || from.endpoint.spec.node === to.node) return undefined;
  const contains = (address: Address) => (pool: NatFacts["pools"][number]) => prefixContains(poolPrefix(pool), address);
  if (isLoopback(packet.destination) || pools.some(contains(packet.destination))) return undefined;
  return pools.find((pool) => pool.spec.natOutgoing === true && contains(packet.source)(pool))?.metadata.name;
}

/** `192.0.2.2:8080`, `[fd00::1]:80`; without a port the address alone. */
export function withPort(address: Address, port: number | undefined): string {
  const text = formatAddress(address);
  if (port === undefined) return text;
  return address.family === 6 ? `[${text}]:${port}` : `${text}:${port}`;
}
