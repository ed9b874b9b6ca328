/**
 * Notices changes of routes and links of this namespace, by the messages that the kernel sends about each of them. Nothing
 * polls.
 */

import type { MessageCursor } from "../netlink/message-reader.ts";
import { arrivals, joinGroups } from "../netlink-group.ts";
import { closeNetlinkSocket, type SocketOpener } from "../netlink-socket.ts";
import { type Link, readLink } from "./link.ts";
import { type Route, readRouteChange } from "./route.ts";

/** RTNLGRP_LINK, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE. */
const GROUPS = [1, 7, 11];
/** Room for what arrives while the process does other work. Only what is queued takes memory. */
const BUFFER_BYTES = 4 * 1024 * 1024;

export type RouteEvent =
  | { readonly kind: "put" | "delete"; readonly route: Route }
  /** A link that is new or has changed. */
  | { readonly kind: "link"; readonly link: Link };

/** Until the signal is aborted. `lost`: messages did not fit into the buffer, and anything may have changed. */
export async function* watchRoutes(
  kernel: SocketOpener,
  signal: AbortSignal,
): AsyncGenerator<readonly RouteEvent[] | "lost"> {
  const socket = kernel.openSocket("route");
  try {
    joinGroups(socket, GROUPS, BUFFER_BYTES);
    for await (const messages of arrivals(socket, signal)) yield messages === "lost" ? messages : eventsIn(messages);
  } finally {
    closeNetlinkSocket(socket);
  }
}

function eventsIn(messages: MessageCursor): readonly RouteEvent[] {
  const events: RouteEvent[] = [];
  while (messages.next()) {
    const link = readLink(messages);
    const event = link === undefined ? readRouteChange(messages) : ({ kind: "link", link } as const);
    if (event !== undefined) events.push(event);
  }
  return events;
}
