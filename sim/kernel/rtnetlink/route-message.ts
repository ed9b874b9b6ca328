/** A route as the kernel describes it. */
import { addressBytes } from "../../../src/ip/address.ts";
import type { MessageWriter } from "../../../src/linux/netlink/message-writer.ts";
import type { Cause, KernelMessage } from "../message.ts";
import type { ModelRoute } from "../model.ts";
import { type Namespace, writeHeader } from "../namespace.ts";
import { GROUP, MESSAGE, METRIC, numberOf, ROUTE_FLAG, ROUTE_KIND, RTA } from "../wire.ts";

const HEADER_LENGTH = 12;
/** In the header, of a table whose number has more than 8 bits. */
const OTHER_TABLE = 252;

export function routeMessage(namespace: Namespace, route: ModelRoute, type: number = MESSAGE.newRoute): KernelMessage {
  const { family } = route.destination.network;
  return {
    type,
    write(writer) {
      writeHeader(writer, HEADER_LENGTH, (view) => {
        view.setUint8(0, numberOf(family));
        view.setUint8(1, route.destination.length);
        view.setUint8(4, route.table < 256 ? route.table : OTHER_TABLE);
        view.setUint8(5, route.protocol);
        view.setUint8(6, route.scope);
        view.setUint8(7, ROUTE_KIND[route.kind]);
        view.setUint32(8, flagsOf(namespace, route), true);
      });
      writer.u32(RTA.table, route.table);
      if (route.destination.length > 0) writer.bytes(RTA.destination, addressBytes(route.destination.network));
      if (family === 6 || route.priority !== 0) writer.u32(RTA.priority, route.priority);
      writeMetrics(writer, route);
      if (route.preferredSource !== undefined) writer.bytes(RTA.preferredSource, addressBytes(route.preferredSource));
      if (route.gateway !== undefined) writer.bytes(RTA.gateway, addressBytes(route.gateway));
      if (route.linkIndex !== undefined) writer.u32(RTA.link, route.linkIndex);
    },
  };
}

export function announceRoute(namespace: Namespace, route: ModelRoute, change: "new" | "delete", cause?: Cause): void {
  const type = change === "new" ? MESSAGE.newRoute : MESSAGE.deleteRoute;
  namespace.announce(GROUP.route[route.destination.network.family], routeMessage(namespace, route, type), cause);
}

function writeMetrics(writer: MessageWriter, { mtu, advertisedSegment }: ModelRoute): void {
  if (mtu === undefined && advertisedSegment === undefined) return;
  const metrics = writer.openUnmarked(RTA.metrics);
  if (mtu !== undefined) writer.u32(METRIC.mtu, mtu);
  if (advertisedSegment !== undefined) writer.u32(METRIC.advertisedSegment, advertisedSegment);
  writer.close(metrics);
}

function flagsOf(namespace: Namespace, { linkIndex, isOnLink }: ModelRoute): number {
  const hasCarrier = linkIndex === undefined || namespace.links.get(linkIndex)?.hasCarrier !== false;
  return (isOnLink ? ROUTE_FLAG.onLink : 0) | (hasCarrier ? 0 : ROUTE_FLAG.linkDown);
}
