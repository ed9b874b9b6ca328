/**
 * Routes, in any table. The same type is used for writing and reading, so that wanted
 * routes can be compared with existing ones.
 */
import { type Address, addressBits, addressBytes, addressFromBytes, type Family } from "../../ip/address.ts";
import { formatPrefix, type Prefix } from "../../ip/prefix.ts";
import type { AttributeCursor, MessageCursor } from "../netlink/message-reader.ts";
import type { MessageWriter } from "../netlink/message-writer.ts";
import type { NetlinkRequest } from "../netlink/request.ts";
import { FLAG } from "../netlink/wire.ts";
import { dump, type NetlinkSocket } from "../netlink-socket.ts";
import { familyNumber, familyOfNumber } from "./family.ts";

const RTM = { newRoute: 24, deleteRoute: 25, getRoute: 26 } as const;
const ATTRIBUTE = {
  destination: 1,
  link: 4,
  gateway: 5,
  priority: 6,
  preferredSource: 7,
  metrics: 8,
  table: 15,
} as const;
const METRIC = { mtu: 2, advertisedSegment: 8 } as const;
const HEADER_LENGTH = 12;
const ON_LINK = 4;
const CLONED = 0x200;
const SCOPE = { universe: 0, site: 200, link: 253, host: 254, nowhere: 255 } as const;
const KIND = { unicast: 1, local: 2, blackhole: 6, unreachable: 7, prohibit: 8, throw: 9 } as const;

export const MAIN_TABLE = 254;

/** The origin of a route: the kernel and the usual tools use the numbers below 8; `own` is not used by a known program. */
export const ROUTE_PROTOCOL = { kernel: 2, boot: 3, static: 4, routerAdvertisement: 9, bird: 12, own: 86 } as const;

export type RouteScope = keyof typeof SCOPE;
export type RouteKind = keyof typeof KIND;

export interface Route {
  /** Length 0 is the default route. */
  readonly destination: Prefix;
  /** `unicast` if absent. */
  readonly kind?: RouteKind;
  readonly linkIndex?: number;
  readonly gateway?: Address;
  /** The gateway is reached directly on the link, without a route to it. */
  readonly isOnLink?: boolean;
  /** `universe` if absent; IPv6 has no other. */
  readonly scope?: RouteScope;
  /** The main table if absent. */
  readonly table?: number;
  /** `boot` if absent, as with `ip`. */
  readonly protocol?: number;
  readonly priority?: number;
  readonly preferredSource?: Address;
  readonly mtu?: number;
  readonly advertisedSegment?: number;
}

/** EEXIST if a route to the destination exists already. */
export function addRoute(route: Route): NetlinkRequest {
  return routeRequest("add", RTM.newRoute, FLAG.create | FLAG.exclusive, route);
}

/** Replaces a route with the same destination, table and priority. */
export function replaceRoute(route: Route): NetlinkRequest {
  return routeRequest("replace", RTM.newRoute, FLAG.create | FLAG.replace, route);
}

/** An absent field matches any value; ESRCH if there is no such route. */
export function deleteRoute(route: Route): NetlinkRequest {
  return routeRequest("delete", RTM.deleteRoute, 0, route);
}

function routeRequest(verb: "add" | "replace" | "delete", type: number, flags: number, route: Route): NetlinkRequest {
  return {
    action: `${verb} route ${formatPrefix(route.destination)}`,
    type,
    flags,
    write(writer) {
      writer.raw(type === RTM.deleteRoute ? matchHeader(route) : header(route));
      writeAttributes(writer, route);
    },
  };
}

function header(route: Route): Uint8Array {
  return encodeHeader(route, {
    protocol: route.protocol ?? ROUTE_PROTOCOL.boot,
    scope: SCOPE[route.scope ?? "universe"],
    kind: KIND[route.kind ?? "unicast"],
  });
}

function matchHeader(route: Route): Uint8Array {
  return encodeHeader(route, {
    protocol: route.protocol ?? 0,
    scope: SCOPE[route.scope ?? "nowhere"],
    kind: route.kind === undefined ? 0 : KIND[route.kind],
  });
}

function encodeHeader(route: Route, numbers: { protocol: number; scope: number; kind: number }): Uint8Array {
  const bytes = new Uint8Array(HEADER_LENGTH);
  const table = route.table ?? MAIN_TABLE;
  bytes[0] = familyNumber(route.destination.network.family);
  bytes[1] = route.destination.length;
  bytes[4] = table < 256 ? table : 0;
  bytes[5] = numbers.protocol;
  bytes[6] = numbers.scope;
  bytes[7] = numbers.kind;
  bytes[8] = route.isOnLink === true ? ON_LINK : 0;
  return bytes;
}

function writeAttributes(writer: MessageWriter, route: Route): void {
  const { network, length } = route.destination;
  if (length > 0) writer.bytes(ATTRIBUTE.destination, addressBytes(network));
  if (route.gateway !== undefined) writer.bytes(ATTRIBUTE.gateway, addressBytes(route.gateway));
  if (route.preferredSource !== undefined) {
    writer.bytes(ATTRIBUTE.preferredSource, addressBytes(route.preferredSource));
  }
  if (route.priority !== undefined) writer.u32(ATTRIBUTE.priority, route.priority);
  if (route.linkIndex !== undefined) writer.u32(ATTRIBUTE.link, route.linkIndex);
  if (route.table !== undefined && route.table > 255) writer.u32(ATTRIBUTE.table, route.table);
  if (route.mtu === undefined && route.advertisedSegment === undefined) return;
  const metrics = writer.openUnmarked(ATTRIBUTE.metrics);
  if (route.mtu !== undefined) writer.u32(METRIC.mtu, route.mtu);
  if (route.advertisedSegment !== undefined) writer.u32(METRIC.advertisedSegment, route.advertisedSegment);
  writer.close(metrics);
}

/** Every route of every table, without the kernel's caches. */
export function listRoutes(socket: NetlinkSocket, family?: Family): Route[] {
  return dump(socket, listRequest(family), (message) =>
    message.type === RTM.newRoute ? decodeRoute(message) : undefined,
  );
}

/** Those of the main table. The others, several for each address of the host, are not even decoded. */
export function listMainRoutes(socket: NetlinkSocket): Route[] {
  return dump(socket, listRequest(), (message) => {
    const isOfMain = message.type === RTM.newRoute && message.view.getUint8(message.start + 4) === MAIN_TABLE;
    return isOfMain ? decodeRoute(message) : undefined;
  });
}

/** Those to single addresses in the main table. The others, several for each link, are not even decoded. */
export function listHostRoutes(socket: NetlinkSocket): Route[] {
  return dump(socket, listRequest(), (message) => {
    if (message.type !== RTM.newRoute) return undefined;
    const { view, start } = message;
    const family = familyOfNumber(view.getUint8(start));
    const isOfHost = family !== undefined && view.getUint8(start + 1) === addressBits(family);
    return isOfHost && view.getUint8(start + 4) === MAIN_TABLE ? decodeRoute(message) : undefined;
  });
}

function listRequest(family?: Family): NetlinkRequest {
  return {
    action: "list routes",
    type: RTM.getRoute,
    flags: 0,
    write(writer) {
      const bytes = new Uint8Array(HEADER_LENGTH);
      bytes[0] = familyNumber(family);
      writer.raw(bytes);
    },
  };
}

/** A change of a route, as the kernel reports it to those who joined its group; `undefined` for other messages. */
export function readRouteChange(
  message: MessageCursor,
): { readonly kind: "put" | "delete"; readonly route: Route } | undefined {
  if (message.type !== RTM.newRoute && message.type !== RTM.deleteRoute) return undefined;
  const route = decodeRoute(message);
  return route && { kind: message.type === RTM.newRoute ? "put" : "delete", route };
}

/** `undefined` for a cached route. */
function decodeRoute(message: MessageCursor): Route | undefined {
  const { view, start } = message;
  const family = familyOfNumber(view.getUint8(start));
  const flags = view.getUint32(start + 8, true);
  if (family === undefined || (flags & CLONED) !== 0) return undefined;

  const route: MutableRoute = {
    destination: { network: { family, value: 0n }, length: view.getUint8(start + 1) },
    table: view.getUint8(start + 4),
    protocol: view.getUint8(start + 5),
    scope: nameOf(SCOPE, view.getUint8(start + 6)) ?? "universe",
    kind: nameOf(KIND, view.getUint8(start + 7)) ?? "unicast",
    isOnLink: (flags & ON_LINK) !== 0,
  };
  readAttributes(route, message.attributes(HEADER_LENGTH));
  return route;
}

type MutableRoute = { -readonly [Field in keyof Route]: Route[Field] };

function readAttributes(route: MutableRoute, attributes: AttributeCursor): void {
  while (attributes.next()) {
    if (attributes.type === ATTRIBUTE.destination) {
      const network = addressFromBytes(attributes.copy());
      if (network !== undefined) route.destination = { network, length: route.destination.length };
    } else if (attributes.type === ATTRIBUTE.gateway) {
      const gateway = addressFromBytes(attributes.copy());
      if (gateway !== undefined) route.gateway = gateway;
    } else if (attributes.type === ATTRIBUTE.preferredSource) {
      const source = addressFromBytes(attributes.copy());
      if (source !== undefined) route.preferredSource = source;
    } else if (attributes.type === ATTRIBUTE.priority) route.priority = attributes.u32();
    else if (attributes.type === ATTRIBUTE.link) route.linkIndex = attributes.u32();
    else if (attributes.type === ATTRIBUTE.table) route.table = attributes.u32();
    else if (attributes.type === ATTRIBUTE.metrics) readMetrics(route, attributes.nested());
  }
}

function readMetrics(route: MutableRoute, metrics: AttributeCursor): void {
  while (metrics.next()) {
    if (metrics.type === METRIC.mtu) route.mtu = metrics.u32();
    if (metrics.type === METRIC.advertisedSegment) route.advertisedSegment = metrics.u32();
  }
}

function nameOf<Name extends string>(table: Readonly<Record<Name, number>>, wanted: number): Name | undefined {
  for (const name in table) if (table[name] === wanted) return name;
  return undefined;
}
