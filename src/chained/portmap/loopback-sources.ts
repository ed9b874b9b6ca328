/**
 * Lets packets from 127.0.0.1 leave through the link to a pod (`route_localnet`).
 * The table's guard keeps packets to and from 127.0.0.0/8 from coming in by it, and so do
 * filters of the link itself, which stay when somebody flushes the ruleset. With
 * br_netfilter the filters of a bridge would see replies with their NAT undone: such a
 * bridge would have the table alone, so nothing is switched on there.
 *
 * A link of one pod ends with the pod. A bridge stays: `loopback-links` notes the
 * pods for which it was switched on, and with the last of them it is switched off again.
 */
import { type Address, addressBytes } from "../../ip/address.ts";
import { KernelError } from "../../linux/kernel-error.ts";
import { type NetlinkSocket, ownSockets } from "../../linux/netlink-socket.ts";
import { commit, tryCommit } from "../../linux/nftables/commit.ts";
import { listElements } from "../../linux/nftables/read.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import { concatenate, interfaceValue } from "../../linux/nftables/value.ts";
import { findLink } from "../../linux/rtnetlink/link.ts";
import { reflectLoopback, removeLoopbackFilters } from "../../linux/rtnetlink/loopback-filter.ts";
import { withRouteSocket } from "../../linux/rtnetlink/route-socket.ts";
import { readSysctl, writeSysctl } from "../../linux/sysctl.ts";
import { quoted } from "../../quote.ts";
import type { Claim } from "./claim.ts";
import type { PodLink } from "./masqueraded-sources.ts";
import { SET, tableOf } from "./table.ts";

const NAME_LENGTH = 16;

const BRIDGE_NETFILTER = "net/bridge/bridge-nf-call-iptables";

/** The link of a pod whose ports are served on 127.0.0.1. */
export interface LoopbackLink extends PodLink {
  /** A bridge on which this plugin switched it on. What somebody else switched on is theirs to switch off. */
  readonly isNoted: boolean;
}

/** `undefined` if its host's loopback could not be guarded: rather no service on 127.0.0.1 than one that would open it. */
export function loopbackLinkOf(
  socket: NetlinkSocket,
  link: PodLink,
  warn: (message: string) => void,
): LoopbackLink | undefined {
  if (isLeftUnserved(link, warn)) return undefined;
  return { ...link, isNoted: link.isShared && (!loopbackSourcesAllowed(link) || isNoted(socket, link.name)) };
}

/** A kernel that cannot do it is warned about, and a link that cannot be guarded since it was decided to serve it. */
export function serveLoopback(
  socket: NetlinkSocket,
  { link, pod }: { readonly link: LoopbackLink; readonly pod: Address },
  warn: (message: string) => void,
): void {
  if (isLeftUnserved(link, warn)) return;
  try {
    allowLoopbackSources(socket, link, pod);
  } catch (failure) {
    if (!(failure instanceof KernelError)) throw failure;
    warn(`Host ports of the container are not served on 127.0.0.1: ${failure.message}`);
  }
}

function isLeftUnserved(link: PodLink, warn: (message: string) => void): boolean {
  const isUnguarded = isLoopbackUnguarded(link);
  if (isUnguarded) warn(`Host ports of the container are not served on 127.0.0.1: ${unguardedReason(link)}`);
  return isUnguarded;
}

function unguardedReason({ name }: PodLink): string {
  const setting = BRIDGE_NETFILTER.replaceAll("/", ".");
  return `with ${setting}=1 the host's loopback cannot be guarded on bridge ${quoted(name)}; clients on the host can use its other addresses`;
}

function allowLoopbackSources(socket: NetlinkSocket, link: LoopbackLink, pod: Address): void {
  const isAllowed = loopbackSourcesAllowed(link);
  if (link.isNoted) {
    const elements = [{ key: keyOf(link.name, pod) }];
    commit(socket, [{ kind: "add-elements", table: tableOf(4), set: SET.loopbackLinks, elements }]);
  }
  if (!isAllowed || needsLoopbackFilters(link)) withRouteSocket(ownSockets, (route) => reflectLoopback(route, link));
  if (!isAllowed) writeSysctl(settingOf(link.name), "1");
}

/** Whether packets from 127.0.0.1 are allowed on this very link, and its filters can tell replies from attacks. */
export function needsLoopbackFilters({ name, isShared }: Pick<PodLink, "name" | "isShared">): boolean {
  return readSysctl(settingOf(name)) === "1" && !(isShared && readSysctl(BRIDGE_NETFILTER) === "1");
}

export function disallowLoopbackSources(link: string): void {
  writeSysctl(settingOf(link), "0");
}

/** Whether packets from 127.0.0.1 cannot be allowed on the link without opening the host's loopback after a flush. */
export function isLoopbackUnguarded(link: PodLink): boolean {
  return link.isShared && readSysctl(BRIDGE_NETFILTER) === "1" && !loopbackSourcesAllowed(link);
}

/** After these ports were released: switches off what was switched on for their pods alone. */
export function takeBackLoopbackSources(socket: NetlinkSocket, released: readonly Claim[]): void {
  if (!released.some(({ family }) => family === 4)) return;
  const noted = pods(socket);
  if (noted.length === 0) return;
  const ending = noted.filter(({ key }) => released.some(({ podAddress }) => isAbout(key, podAddress)));
  if (ending.length === 0) return;
  // Refused if another DEL was quicker.
  tryCommit(socket, [{ kind: "delete-elements", table: tableOf(4), set: SET.loopbackLinks, elements: ending }]);
  for (const name of new Set(ending.map(({ key }) => linkOf(key)))) switchOffUnlessUsed(socket, name);
}

export function loopbackSourcesAllowed({ name }: PodLink): boolean {
  return readSysctl(settingOf(name)) === "1" || readSysctl(settingOf("all")) === "1";
}

/** An ADD at the same moment notes its pod before it switches on: whoever comes second sees the other. */
function switchOffUnlessUsed(socket: NetlinkSocket, name: string): void {
  if (isNoted(socket, name)) return;
  disallowLoopbackSources(name);
  if (isNoted(socket, name)) {
    writeSysctl(settingOf(name), "1");
    return;
  }
  withRouteSocket(ownSockets, (route) => {
    const link = findLink(route, name);
    if (link === undefined) return;
    removeLoopbackFilters(route, link);
    if (isNoted(socket, name)) reflectLoopback(route, link);
  });
}

function isNoted(socket: NetlinkSocket, name: string): boolean {
  return pods(socket).some(({ key }) => linkOf(key) === name);
}

function pods(socket: NetlinkSocket): readonly NftElement[] {
  return listElements(socket, tableOf(4), SET.loopbackLinks);
}

function keyOf(link: string, pod: Address): Uint8Array {
  return concatenate(interfaceValue(link), addressBytes(pod));
}

function linkOf(key: Uint8Array): string {
  return new TextDecoder().decode(key.subarray(0, key.indexOf(0)));
}

function isAbout(key: Uint8Array, pod: Address): boolean {
  return pod.family === 4 && Bun.deepEquals(key.slice(NAME_LENGTH), new Uint8Array(addressBytes(pod)));
}

function settingOf(link: string): string {
  return `net/ipv4/conf/${link}/route_localnet`;
}
