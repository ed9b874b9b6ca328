/** Which route a packet takes: rules, then tables, then the longest prefix, then the lowest priority. */
import { type Address, isSameAddress } from "../../../src/ip/address.ts";
import { prefixContains } from "../../../src/ip/prefix.ts";
import type { ErrnoName } from "../../../src/linux/errno.ts";
import type { ModelRoute, NetworkNamespace, RouteKind } from "../model.ts";
import { TABLE } from "../wire.ts";

export interface Packet {
  readonly destination: Address;
  readonly source?: Address;
  /** Only through this link. */
  readonly linkIndex?: number;
  /** Only by routes of at least this scope. */
  readonly scope?: number;
}

const ERROR: Partial<Record<RouteKind, ErrnoName>> = {
  blackhole: "EINVAL",
  unreachable: "EHOSTUNREACH",
  prohibit: "EACCES",
};

/** The route, or why there is none. */
export function lookUp(namespace: NetworkNamespace, packet: Packet): ModelRoute | ErrnoName {
  const { family } = packet.destination;
  for (const rule of namespace.rules) {
    if (rule.family !== family) continue;
    if (rule.source !== undefined && !isFrom(rule.source, packet.source)) continue;
    const found = lookUpIn(namespace, rule.table, packet);
    if (found === undefined || found.kind === "throw") continue;
    return ERROR[found.kind] ?? found;
  }
  return "ENETUNREACH";
}

function isFrom(prefix: { readonly network: Address; readonly length: number }, source: Address | undefined): boolean {
  return source !== undefined && prefixContains(prefix, source);
}

/** In one table only. */
export function lookUpIn(namespace: NetworkNamespace, table: number, packet: Packet): ModelRoute | undefined {
  const isMerged = packet.destination.family === 4 && MERGED.includes(table) && namespace.hasOwnIpv4Rules !== true;
  let best: ModelRoute | undefined;
  for (const route of namespace.routes) {
    if (!(route.table === table || (isMerged && MERGED.includes(route.table)))) continue;
    if (!prefixContains(route.destination, packet.destination)) continue;
    if (packet.scope !== undefined && route.scope < packet.scope) continue;
    const isError = route.kind === "throw" || ERROR[route.kind] !== undefined;
    if (packet.linkIndex !== undefined && route.linkIndex !== packet.linkIndex && !isError) continue;
    if (best === undefined || isBetter(route, best)) best = route;
  }
  return best;
}

/** IPv4 has both in one tree, until somebody adds a rule: then the longer prefix wins, whichever table it is in. */
const MERGED: readonly number[] = [TABLE.local, TABLE.main];

/** Routes of one destination in one table stand in the order of their priorities. */
function isBetter(route: ModelRoute, best: ModelRoute): boolean {
  if (route.destination.length !== best.destination.length) return route.destination.length > best.destination.length;
  return route.table === TABLE.local && best.table === TABLE.main;
}

/** What the local table says about an address. */
export function kindOfAddress(namespace: NetworkNamespace, address: Address): RouteKind {
  if (address.family === 4 && address.value >> 28n === 0xen) return "multicast";
  if (address.family === 4 && (address.value === 0n || address.value === 0xffff_ffffn)) return "broadcast";
  // Before its first route the table does not exist.
  if (address.family === 4 && namespace.hasLocalIpv4Table === false) return "broadcast";
  const kind = lookUpIn(namespace, TABLE.local, { destination: address })?.kind ?? "unicast";
  return kind === "throw" || ERROR[kind] !== undefined ? "unicast" : kind;
}

/** Whether the namespace has the address itself. */
export function isOwnAddress(namespace: NetworkNamespace, address: Address, linkIndex?: number): boolean {
  return namespace.addresses.some(
    (each) => isSameAddress(each.address, address) && (linkIndex === undefined || each.linkIndex === linkIndex),
  );
}
