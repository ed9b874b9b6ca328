/** What happens when a link goes up or down, gets or loses its carrier, or is deleted. */
import { isSameAddress, parseAddress } from "../../../src/ip/address.ts";
import type { ModelLink } from "../model.ts";
import { Namespace, removeWhere } from "../namespace.ts";
import { removeLinkSettings } from "../settings.ts";
import { GROUP, MESSAGE, SCOPE } from "../wire.ts";
import { addIpv4, addRoutesOf, addressesOf, deleteIpv4 } from "./ipv4-addresses.ts";
import { configureIpv6, dropIpv6, restorePrefixRoutes } from "./ipv6-addresses.ts";
import { announceLink, linkMessage } from "./link-message.ts";
import { flushEntries, flushNeighbours } from "./neighbours.ts";
import { flushRoutes } from "./route-table.ts";

const FLAG = { up: 1, running: 0x40 } as const;
const EVERYTHING = 0xffff_ffff;
/** How long the kernel may take to notice a change of a carrier. */
const CARRIER_MILLISECONDS = 2;

export interface PlacedLink {
  readonly namespace: Namespace;
  readonly link: ModelLink;
}

export function bringUp(
  { namespace, link }: PlacedLink,
  announce = () => announceLink(namespace, link, FLAG.up),
): void {
  if (link.isUp) return;
  link.isUp = true;
  const peer = peerOf(link);
  if (peer?.link.isUp === true) {
    setCarrier({ namespace, link }, true);
    setCarrier(peer, true);
  }
  link.isActive = link.hasCarrier;
  announce();
  startIpv4(namespace, link);
  restorePrefixRoutes(namespace, link);
  if (isReady(link)) {
    link.isIpv6Ready = true;
    configureIpv6(namespace, link);
  }
}

function startIpv4(namespace: Namespace, link: ModelLink): void {
  const loopback = parseAddress("127.0.0.1");
  const own = addressesOf(namespace, link.index);
  if (link.name === "lo" && loopback !== undefined && !own.some(({ address }) => isSameAddress(address, loopback))) {
    const address = { linkIndex: link.index, address: loopback, length: 8, scope: SCOPE.host };
    addIpv4(namespace, address, { flags: 0 });
  }
  for (const address of own) addRoutesOf(namespace, address);
}

export function bringDown({ namespace, link }: PlacedLink): void {
  if (!link.isUp) return;
  link.isUp = false;
  link.isActive = false;
  const peer = peerOf(link);
  if (link.kind === "veth") setCarrier({ namespace, link }, false);
  if (peer !== undefined) setCarrier(peer, false);
  announceLink(namespace, link, FLAG.up | FLAG.running);
  stopIpv4(namespace, link);
  stopIpv6(namespace, link);
}

/** The routes to its own addresses stay. */
function stopIpv4(namespace: Namespace, { index }: ModelLink): void {
  flushRoutes(namespace, 4, (route) => route.linkIndex === index && route.scope < SCOPE.host);
  flushNeighbours(namespace, 4, index);
}

export function stopIpv6(namespace: Namespace, link: ModelLink): void {
  flushRoutes(namespace, 6, (route) => route.linkIndex === link.index);
  flushNeighbours(namespace, 6, link.index);
  dropIpv6(namespace, link);
}

/** The kernel acts on it a little later. */
function setCarrier(placed: PlacedLink, hasCarrier: boolean): void {
  if (placed.link.hasCarrier === hasCarrier) return;
  placed.link.hasCarrier = hasCarrier;
  watchCarrier(placed);
}

export function watchCarrier({ namespace, link }: PlacedLink): void {
  if (link.isCarrierChangePending) return;
  link.isCarrierChangePending = true;
  namespace.clock.later(CARRIER_MILLISECONDS * namespace.clock.chance(), () => noticeCarrier({ namespace, link }));
}

/** Also when somebody asks for the link. */
export function noticeCarrier({ namespace, link }: PlacedLink): void {
  if (!link.isCarrierChangePending || namespace.links.get(link.index) !== link) return;
  link.isCarrierChangePending = false;
  if (link.hasCarrier) link.operState = "up";
  else link.operState = link.peer === undefined ? "down" : "lower layer down";
  if (!link.isUp) return;
  link.isActive = link.hasCarrier;
  if (isReady(link) && !link.isIpv6Ready) {
    link.isIpv6Ready = true;
    configureIpv6(namespace, link);
  }
  announceLink(namespace, link);
}

function isReady({ operState, isActive }: ModelLink): boolean {
  return isActive && (operState === "up" || operState === "unknown");
}

function peerOf({ peer }: ModelLink): PlacedLink | undefined {
  const link = peer?.namespace.links.get(peer.index);
  return link === undefined || !(peer?.namespace instanceof Namespace)
    ? undefined
    : { namespace: peer.namespace, link };
}

/** All at once: first all are down, then all are gone. The other end of a veth goes too, and a VXLAN device with the link below it. */
export function deleteLinks(placed: readonly PlacedLink[]): void {
  const all = new Map<ModelLink, PlacedLink>();
  for (const each of placed) {
    all.set(each.link, each);
    const peer = peerOf(each.link);
    if (peer !== undefined) all.set(peer.link, peer);
  }
  for (const { namespace, link } of all.values()) {
    delete link.peer;
    if (link.vxlan === undefined) continue;
    flushEntries(namespace, link.index);
    announceBelow(namespace, link, (below) => !all.has(below));
  }
  for (const each of all.values()) bringDown(each);
  for (const each of all.values()) unregister(each);
  const above = [...all.values()].flatMap(({ namespace, link }) =>
    [...namespace.links.values()]
      .filter(({ vxlan }) => vxlan?.underlyingIndex === link.index)
      .map((device) => ({ namespace, link: device })),
  );
  if (above.length > 0) deleteLinks(above);
}

/** The link below a VXLAN device is told when it gets or loses the device. */
export function announceBelow(
  namespace: Namespace,
  { vxlan }: ModelLink,
  isTold: (below: ModelLink) => boolean = () => true,
): void {
  const below = vxlan?.underlyingIndex === undefined ? undefined : namespace.links.get(vxlan.underlyingIndex);
  if (below !== undefined && isTold(below)) announceLink(namespace, below);
}

export function unregister({ namespace, link }: PlacedLink): void {
  for (let rest = addressesOf(namespace, link.index); rest[0] !== undefined; ) {
    deleteIpv4(namespace, rest[0]);
    rest = addressesOf(namespace, link.index);
  }
  flushRoutes(namespace, 4, (route) => route.linkIndex === link.index);
  flushNeighbours(namespace, 4, link.index);
  stopIpv6(namespace, link);
  removeWhere(namespace.forwarding, ({ linkIndex }) => linkIndex === link.index);
  namespace.links.delete(link.index);
  removeLinkSettings(namespace.sysctls, link.name);
  namespace.announce(GROUP.link, linkMessage(namespace, link, MESSAGE.deleteLink, EVERYTHING));
}
