/**
 * Everything to be configured in the kernel for one attachment, as plain data.
 *
 *   host                                            container
 *   vend1234 ee:ee:ee:ee:ee:ee ═══ veth ═══ eth0, with its own MAC
 *     route 10.0.0.5/32 ──────────────────> 10.0.0.5/32 (permanent neighbour entry)
 *    (permanent neighbour entry) <───────── default via 169.254.1.1
 *
 * The host's end answers ARP for gateway addresses that no host has, so every pod
 * on every host is wired the same way and needs no address of the host. ADD
 * carries out the plan (wire.ts), CHECK compares it with the kernel
 * (wiring-check.ts).
 */
import { type Address, addressBits, addressOf, type Family } from "../ip/address.ts";
import { type InterfaceAddress, type Prefix, singlePrefix } from "../ip/prefix.ts";
import type { Ipv4Settings } from "../linux/rtnetlink/link.ts";
import type { Route } from "../linux/rtnetlink/route.ts";
import { workloadRoute } from "../routing/workload-route.ts";

export interface WiringPlan {
  /** Of both ends; absent: the kernel's default. */
  readonly mtu?: number;
  /** Receive queues, and transmit queues, of both ends. */
  readonly queues: number;
  readonly host: HostSide;
  readonly container: ContainerSide;
}

interface HostSide {
  readonly name: string;
  readonly mac: Uint8Array;
  readonly mark: string;
  /** Set when the link is created, so that ADD need not write the equivalent sysctls. */
  readonly ipv4?: Ipv4Settings;
  /** Sources that the container may use beside its addresses. */
  readonly sourcePrefixes: readonly Prefix[];
  readonly sysctls: readonly PlannedSysctl[];
  /**
   * Resolving the MAC could take a second while the link's own address is not ready, and resolved entries count
   * against the table's limit: 1,024 pods, over all namespaces of a machine.
   */
  readonly neighbours: readonly PlannedNeighbour[];
  readonly routes: readonly PlannedRoute[];
}

interface ContainerSide {
  readonly name: string;
  readonly mac: Uint8Array;
  readonly sysctls: readonly PlannedSysctl[];
  readonly addresses: readonly InterfaceAddress[];
  readonly neighbours: readonly PlannedNeighbour[];
  readonly routes: readonly PlannedRoute[];
}

export interface PlannedSysctl {
  readonly name: string;
  readonly value: string;
  /** `initial`: needed for the wiring; the container may change it later. `optional`: everything works without it. */
  readonly need: "required" | "initial" | "optional";
  /** How ADD sets it on new links; absent: it reads before it writes, since writing may take a lock of the whole kernel. */
  readonly whenNew?: "set at creation" | "write without reading";
}

export type PlannedRoute = Omit<Route, "linkIndex">;

export interface PlannedNeighbour {
  readonly address: Address;
  readonly mac: Uint8Array;
}

/** A route to set in the container; it always leads to the host. */
export interface WantedRoute {
  readonly destination: Prefix;
  readonly mtu?: number | undefined;
  readonly advertisedSegment?: number | undefined;
  readonly priority?: number | undefined;
  readonly table?: number | undefined;
}

export interface Wiring {
  readonly hostInterface: string;
  readonly mark: string;
  readonly ifname: string;
  readonly mac: Uint8Array;
  readonly addresses: readonly Address[];
  readonly routes: readonly WantedRoute[];
  readonly mtu?: number | undefined;
  readonly queues: number;
  readonly allowIpForwarding: boolean;
  /** Sources beside the addresses; they are guarded by firewall/guard-rules.ts alone. */
  readonly sourcePrefixes?: readonly Prefix[];
}

/** The MAC of every host link. */
export const HOST_MAC = Uint8Array.of(0xee, 0xee, 0xee, 0xee, 0xee, 0xee);

/** 169.254.1.1, and the link-local address derived from the host's MAC: fe80::ecee:eeff:feee:eeee. */
const GATEWAY: Readonly<Record<Family, Address>> = {
  4: { family: 4, value: 0xa9fe0101n },
  6: { family: 6, value: 0xfe80_0000_0000_0000_ecee_eeff_feee_eeeen },
};

const FAMILIES = [4, 6] as const;

/** The reverse path filter: the container can send from its own addresses only. IPv6 has no such setting: see firewall/guard-rules.ts. */
const STRICT = 1;
const OFF = 0;

export function planWiring(wiring: Wiring): WiringPlan {
  const families = FAMILIES.filter((family) => wiring.addresses.some((address) => address.family === family));
  const { sourcePrefixes = [] } = wiring;
  const reversePathFilter = sourcePrefixes.some(({ network }) => network.family === 4) ? OFF : STRICT;
  return {
    ...(wiring.mtu === undefined ? {} : { mtu: wiring.mtu }),
    queues: wiring.queues,
    host: {
      name: wiring.hostInterface,
      mac: HOST_MAC,
      mark: wiring.mark,
      ipv4: { reversePathFilter, ...(families.includes(4) ? { forwarding: 1, proxyArp: 1 } : {}) },
      sourcePrefixes,
      sysctls: hostSysctls(wiring.hostInterface, families, reversePathFilter),
      neighbours: wiring.addresses.map((address) => ({ address, mac: wiring.mac })),
      routes: wiring.addresses.map(workloadRoute),
    },
    container: {
      name: wiring.ifname,
      mac: wiring.mac,
      sysctls: containerSysctls(wiring, families),
      addresses: wiring.addresses.map((address) => ({ address, length: addressBits(address.family) })),
      neighbours: families.map((family) => ({ address: GATEWAY[family], mac: HOST_MAC })),
      routes: families.flatMap((family) => containerRoutes(wiring.routes, family)),
    },
  };
}

/** The gateway of a pod's routes of this family. */
export function gatewayOf(family: Family): Address {
  return GATEWAY[family];
}

export function defaultRoute(family: Family): WantedRoute {
  return { destination: { network: addressOf(family, 0n) ?? GATEWAY[family], length: 0 } };
}

function hostSysctls(link: string, families: readonly Family[], reversePath: number): readonly PlannedSysctl[] {
  const ipv4 = [
    required("net/ipv4/ip_forward", "1"),
    setAtCreation(required(`net/ipv4/conf/${link}/forwarding`, "1")),
    setAtCreation(required(`net/ipv4/conf/${link}/proxy_arp`, "1")),
    withoutReading(optional(`net/ipv4/neigh/${link}/proxy_delay`, "0")),
  ];
  const ipv6 = [
    required("net/ipv6/conf/all/forwarding", "1"),
    required(`net/ipv6/conf/${link}/disable_ipv6`, "0"),
    withoutReading(initial(`net/ipv6/conf/${link}/accept_dad`, "0")),
    required(`net/ipv6/conf/${link}/forwarding`, "1"),
    withoutReading(required(`net/ipv6/conf/${link}/proxy_ndp`, "1")),
  ];
  return [
    setAtCreation(required(`net/ipv4/conf/${link}/rp_filter`, `${reversePath}`)),
    ...(families.includes(4) ? ipv4 : []),
    ...(families.includes(6) ? ipv6 : []),
    withoutReading(optional(`net/ipv6/conf/${link}/accept_ra`, "0")),
  ];
}

function containerSysctls(wiring: Wiring, families: readonly Family[]): readonly PlannedSysctl[] {
  const forwarding = wiring.allowIpForwarding ? "1" : "0";
  const ipv6 = [
    ...["all", "default", "lo"].map((place) => required(`net/ipv6/conf/${place}/disable_ipv6`, "0")),
    withoutReading(initial(`net/ipv6/conf/${wiring.ifname}/accept_dad`, "0")),
    initial("net/ipv6/conf/all/forwarding", forwarding),
  ];
  return [
    ...(families.includes(4) ? [withoutReading(initial("net/ipv4/ip_forward", forwarding))] : []),
    ...(families.includes(6) ? ipv6 : []),
  ];
}

function containerRoutes(wanted: readonly WantedRoute[], family: Family): readonly PlannedRoute[] {
  const gateway = GATEWAY[family];
  const own = wanted.filter(({ destination }) => destination.network.family === family);
  // IPv6 needs no route to a link-local gateway.
  const toGateway: readonly PlannedRoute[] =
    family === 4 ? [{ destination: singlePrefix(gateway), scope: "link" }] : [];
  return [...toGateway, ...own.map((route) => routeVia(gateway, route))];
}

/** To the kernel table 0 means the main table. */
function routeVia(
  gateway: Address,
  { destination, mtu, advertisedSegment, priority, table }: WantedRoute,
): PlannedRoute {
  return {
    destination,
    gateway,
    ...(mtu === undefined ? {} : { mtu }),
    ...(advertisedSegment === undefined ? {} : { advertisedSegment }),
    ...(priority === undefined ? {} : { priority }),
    ...(table === undefined || table === 0 ? {} : { table }),
  };
}

function setAtCreation(sysctl: PlannedSysctl): PlannedSysctl {
  return { ...sysctl, whenNew: "set at creation" };
}

/** Usually has another value on a new link or in a new namespace, and writing it takes no lock, even if it is the same. */
function withoutReading(sysctl: PlannedSysctl): PlannedSysctl {
  return { ...sysctl, whenNew: "write without reading" };
}

function required(name: string, value: string): PlannedSysctl {
  return { name, value, need: "required" };
}

function initial(name: string, value: string): PlannedSysctl {
  return { name, value, need: "initial" };
}

function optional(name: string, value: string): PlannedSysctl {
  return { name, value, need: "optional" };
}
