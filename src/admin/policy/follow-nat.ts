/** Where a packet really goes, and from where it seems to come, after host ports, Services, floating IPs and masquerading. Pure. */
import { type Address, formatAddress, isSameAddress, parseAddress } from "../../ip/address.ts";
import { prefixContains } from "../../ip/prefix.ts";
import { poolPrefix } from "../../model/ip-pool.ts";
import { protocolNumber } from "../../model/protocols.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import type { Packet } from "../../policy/judge/packet.ts";
import { quoted } from "../../quote.ts";
import type { PeerPlace } from "./explain-peer.ts";
import type { NatFacts, ServicePort, ThisHost } from "./nat-facts.ts";

/** What the destination of a packet becomes. */
export interface Target {
  readonly address: Address;
  readonly port: number | undefined;
  /** `published port of node "n"`, `Service shop/web`, `floating IP`. */
  readonly by: string;
}

export interface Followed {
  /** Several backends of a Service; none: the destination is not rewritten. */
  readonly targets: readonly Target[];
  /** What could not be followed, in words. */
  readonly note?: string;
}

interface Known {
  readonly endpoints: readonly WorkloadEndpoint[];
  readonly here: ThisHost;
  readonly facts: NatFacts;
}

export function followDestination(packet: Packet, to: PeerPlace, known: Known): Followed {
  if (to.endpoint !== undefined || to.hostEndpoint !== undefined) return { targets: [] };
  const service = serviceAt(packet, to, known);
  if (service !== undefined) return followService(packet, service);
  const targets =
    [recordedTargets, floatingTargets].map((find) => find(packet, to, known)).find((found) => found.length > 0) ?? [];
  const note = targets.length > 0 ? undefined : unknownNote(packet, to, known);
  return { targets, ...(note === undefined ? {} : { note }) };
}

/** Whether the address is one of this host, its loopback included. */
export function isHere(address: Address, { addresses }: ThisHost): boolean {
  const isLoopback = address.family === 4 ? address.value >> 24n === 127n : address.value === 1n;
  return isLoopback || addresses.some((own) => isSameAddress(own, address));
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

function followService({ destination }: Packet, { service, backends }: ServicePort): Followed {
  const targets = backends
    .filter(({ address }) => address.family === destination.family)
    .map((backend): Target => ({ ...backend, by: `Service ${service}` }));
  return targets.length > 0
    ? { targets }
    : { targets, note: `Service ${service} has no backend that is ready: nothing answers, whatever policies say` };
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
  if (published !== undefined) return [{ address: published.address, port: published.port, by }];
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
      return address === undefined || port === undefined ? [] : [{ address, port: port.port, by }];
    })
    .slice(0, 1);
}

function isOpenAt(hostIp: string | undefined, address: Address): boolean {
  const own = parseAddress(hostIp ?? "");
  return own === undefined || (own.family === address.family && (own.value === 0n || isSameAddress(own, address)));
}

function floatingTargets({ destination, destinationPort }: Packet, _: PeerPlace, { endpoints }: Known) {
  return endpoints
    .flatMap(({ spec }) => spec.ipNATs ?? [])
    .flatMap(({ externalIP, internalIP }): readonly Target[] => {
      const [external, address] = [parseAddress(externalIP), parseAddress(internalIP)];
      if (external === undefined || address === undefined || !isSameAddress(external, destination)) return [];
      return [{ address, port: destinationPort, by: "floating IP" }];
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
  if (pools.some(contains(packet.destination))) return undefined;
  return pools.find((pool) => pool.spec.natOutgoing === true && contains(packet.source)(pool))?.metadata.name;
}

function addressesOf({ spec }: WorkloadEndpoint): readonly Address[] {
  return (spec.ipNetworks ?? []).flatMap((text) => parseAddress(text.split("/")[0] ?? "") ?? []);
}

/** `192.0.2.2:8080`, `[fd00::1]:80`; without a port the address alone. */
export function withPort(address: Address, port: number | undefined): string {
  const text = formatAddress(address);
  if (port === undefined) return text;
  return address.family === 6 ? `[${text}]:${port}` : `${text}:${port}`;
}
