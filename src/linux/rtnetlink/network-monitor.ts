/**
 * Notices changes of links, addresses, routes, neighbours and forwarding entries of this namespace, by the messages that the
 * kernel sends about each of them. Nothing polls.
 */
import type { MessageCursor } from "../netlink/message-reader.ts";
import { arrivals, joinGroups } from "../netlink-group.ts";
import { closeNetlinkSocket, type SocketOpener } from "../netlink-socket.ts";
import { type AddressChange, readAddressChange } from "./address.ts";
import { type KnownForwardingEntry, readForwardingChange } from "./forwarding-entry.ts";
import { type Link, readLink } from "./link.ts";
import { RTM as LINK } from "./link-wire.ts";
import { type KnownNeighbour, readNeighbourChange } from "./neighbour.ts";
import { RTM_NEIGHBOUR } from "./neighbour-wire.ts";
import { type Route, readRouteChange } from "./route.ts";

/** RTNLGRP_LINK, _NEIGH, _IPV4_IFADDR, _IPV4_ROUTE, _IPV6_IFADDR, _IPV6_ROUTE. */
const GROUPS = [1, 3, 5, 7, 9, 11];
/** Room for what arrives while the process does other work. Only what is queued takes memory. */
const BUFFER_BYTES = 8 * 1024 * 1024;
/** Where messages about links and neighbours contain the index of the link. */
const INDEX_AT = 4;

export type NetworkEvent =
  | { readonly kind: "route"; readonly change: "put" | "delete"; readonly route: Route }
  | { readonly kind: "neighbour"; readonly change: "put" | "delete"; readonly neighbour: KnownNeighbour }
  | { readonly kind: "forwarding"; readonly change: "put" | "delete"; readonly entry: KnownForwardingEntry }
  | { readonly kind: "link"; readonly change: "put"; readonly link: Link }
  | { readonly kind: "link"; readonly change: "delete"; readonly linkIndex: number }
  | ({ readonly kind: "address" } & AddressChange);

export interface NetworkMonitorOptions {
  readonly kernel: SocketOpener;
  readonly signal: AbortSignal;
  /** Neighbours of other links are ignored: those of pods change all the time. */
  readonly hasNeighbours: (linkIndex: number) => boolean;
}

/** Until the signal is aborted. `lost`: messages did not fit into the buffer, and anything may have changed. */
export async function* watchNetwork({
  kernel,
  signal,
  hasNeighbours,
}: NetworkMonitorOptions): AsyncGenerator<readonly NetworkEvent[] | "lost"> {
  const socket = kernel.openSocket("route");
  try {
    joinGroups(socket, GROUPS, BUFFER_BYTES);
    for await (const messages of arrivals(socket, signal)) {
      yield messages === "lost" ? messages : eventsIn(messages, hasNeighbours);
    }
  } finally {
    closeNetlinkSocket(socket);
  }
}

function eventsIn(messages: MessageCursor, hasNeighbours: (linkIndex: number) => boolean): readonly NetworkEvent[] {
  const events: NetworkEvent[] = [];
  while (messages.next()) {
    const event = readEvent(messages, hasNeighbours);
    if (event !== undefined) events.push(event);
  }
  return events;
}

function readEvent(message: MessageCursor, hasNeighbours: (linkIndex: number) => boolean): NetworkEvent | undefined {
  switch (message.type) {
    case LINK.newLink: {
      const link = readLink(message);
      return link && { kind: "link", change: "put", link };
    }
    case LINK.deleteLink:
      return { kind: "link", change: "delete", linkIndex: indexIn(message) };
    case RTM_NEIGHBOUR.new:
    case RTM_NEIGHBOUR.delete:
      return hasNeighbours(indexIn(message)) ? readNeighbourEvent(message) : undefined;
    default:
      return readAddressEvent(message) ?? readRouteEvent(message);
  }
}

function readNeighbourEvent(message: MessageCursor): NetworkEvent | undefined {
  const forwarding = readForwardingChange(message);
  if (forwarding !== undefined) return { kind: "forwarding", change: forwarding.kind, entry: forwarding.entry };
  const change = readNeighbourChange(message);
  return change && { kind: "neighbour", change: change.kind, neighbour: change.neighbour };
}

/** Every link has an address of its own scope: it is reported twice, and nobody routes by it. */
function readAddressEvent(message: MessageCursor): NetworkEvent | undefined {
  const change = readAddressChange(message);
  return change === undefined || change.address.scope === "link" ? undefined : { kind: "address", ...change };
}

function readRouteEvent(message: MessageCursor): NetworkEvent | undefined {
  const change = readRouteChange(message);
  return change && { kind: "route", change: change.kind, route: change.route };
}

function indexIn(message: MessageCursor): number {
  return message.view.getInt32(message.start + INDEX_AT, true);
}
