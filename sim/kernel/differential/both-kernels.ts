/** The same requests to the kernel of this machine and to the model, and what the product's own readers see afterwards. */
import { type Address, addressFromBytes, formatAddress } from "../../../src/ip/address.ts";
import { describeErrno } from "../../../src/linux/errno.ts";
import { KernelError } from "../../../src/linux/kernel-error.ts";
import type { MessageCursor } from "../../../src/linux/netlink/message-reader.ts";
import { drain, joinGroups } from "../../../src/linux/netlink-group.ts";
import {
  attempt,
  closeNetlinkSocket,
  type NetlinkSocket,
  openNetlinkSocket,
} from "../../../src/linux/netlink-socket.ts";
import { closeNetns, type Netns, openNetns, runInNewNetns } from "../../../src/linux/netns.ts";
import { listAddresses, readAddressChange } from "../../../src/linux/rtnetlink/address.ts";
import { listForwardingEntries, readForwardingChange } from "../../../src/linux/rtnetlink/forwarding-entry.ts";
import { findLinkByIndex, type Link, listLinks, readLink } from "../../../src/linux/rtnetlink/link.ts";
import { listNeighbours, readNeighbourChange } from "../../../src/linux/rtnetlink/neighbour.ts";
import { listHostRoutes, listMainRoutes, listRoutes, readRouteChange } from "../../../src/linux/rtnetlink/route.ts";
import { routeTowards } from "../../../src/linux/rtnetlink/route-lookup.ts";
import { findVxlan } from "../../../src/linux/rtnetlink/vxlan.ts";
import { writeSysctl } from "../../../src/linux/sysctl.ts";
import { Random } from "../../schedule/random.ts";
import { SimulatedHost } from "../simulated-host.ts";
import type { Operation, Side } from "./operation.ts";

/** One kernel with its two namespaces. */
export interface KernelUnderTest {
  readonly sockets: Readonly<Record<Side, NetlinkSocket>>;
  /** Sockets that hear of every change. */
  readonly listeners: Readonly<Record<Side, NetlinkSocket>>;
  readonly descriptors: Readonly<Record<Side, number>>;
  /** What the kernel does a little later is done. */
  settle(): void;
  close(): void;
}

const SIDES = ["host", "pod"] as const;
const DUPLICATE_DETECTION = "net/ipv6/conf/default/accept_dad";

/** Two new namespaces of this machine. */
export function openRealKernel(): KernelUnderTest {
  const open = (): { readonly socket: NetlinkSocket; readonly listener: NetlinkSocket; readonly netns: Netns } =>
    runInNewNetns(() => {
      // It takes a second or two, and how long a test takes must not decide.
      writeSysctl(DUPLICATE_DETECTION, "0");
      const netns = openNetns("/proc/thread-self/ns/net");
      if (netns === undefined) throw new Error("/proc is not mounted");
      return { socket: openNetlinkSocket("route"), listener: listening(openNetlinkSocket("route")), netns };
    });
  const [host, pod] = [open(), open()];
  return {
    sockets: { host: host.socket, pod: pod.socket },
    listeners: { host: host.listener, pod: pod.listener },
    descriptors: { host: host.netns.fd, pod: pod.netns.fd },
    // A question about a link makes the kernel act on its carrier.
    settle: () => {
      for (const { socket } of [host, pod]) {
        for (const { index } of listLinks(socket)) findLinkByIndex(socket, index);
      }
    },
    close: () => {
      for (const { socket, listener, netns } of [host, pod]) {
        closeNetlinkSocket(socket);
        closeNetlinkSocket(listener);
        closeNetns(netns);
      }
    },
  };
}

const SOON_MILLISECONDS = 100;
const DELETE_LINK = 17;

/** Two new namespaces of a model with the abilities of this machine. */
export function openModelKernel(seed: number): KernelUnderTest {
  const host = new SimulatedHost({
    name: "model",
    random: new Random(seed),
    kinds: ["veth", "vxlan", "ifb"],
    processors: navigator.hardwareConcurrency,
  });
  const kernel = host.directKernel();
  const opened = SIDES.map((side) => {
    host.makeNamespace(side);
    const netns = kernel.openNetns(side);
    if (netns === undefined) throw new Error("no such namespace");
    kernel.withSysctlsOf(netns, (sysctls) => sysctls.writeSysctl(DUPLICATE_DETECTION, "0"));
    const [socket, listener] = [kernel.openSocketIn(netns, "route"), kernel.openSocketIn(netns, "route")];
    return [side, { fd: netns.fd, socket, listener: listening(listener) }] as const;
  });
  const of = Object.fromEntries(opened) as Record<
    Side,
    { readonly fd: number; readonly socket: NetlinkSocket; readonly listener: NetlinkSocket }
  >;
  return {
    sockets: { host: of.host.socket, pod: of.pod.socket },
    listeners: { host: of.host.listener, pod: of.pod.listener },
    descriptors: { host: of.host.fd, pod: of.pod.fd },
    settle: () => host.settle(SOON_MILLISECONDS),
    close: () => {},
  };
}

/** Returns what the kernel answered, as text. */
export function carryOut(kernel: KernelUnderTest, operation: Operation): string {
  const socket = kernel.sockets[operation.side];
  if (operation.kind === "look up") return hiding(listLinks(socket))(lookUp(socket, operation));
  const outcomes = attempt(
    socket,
    operation.requests((side) => kernel.descriptors[side]),
  );
  return outcomes.map((refusal) => (refusal === undefined ? "done" : describeErrno(refusal.errno))).join(", ");
}

function lookUp(socket: NetlinkSocket, { address }: Extract<Operation, { readonly kind: "look up" }>): string {
  try {
    const found = routeTowards(socket, address);
    if (found === undefined) return "no route";
    const { gateway, source } = found;
    const words = [gateway, source].map((each) => (each === undefined ? "none" : formatAddress(each)));
    return `link ${found.linkIndex}, gateway ${words[0]}, source ${words[1]}${found.isLocal ? ", local" : ""}`;
  } catch (failure) {
    if (failure instanceof KernelError) return failure.message;
    throw failure;
  }
}

/** Groups of links, neighbours, addresses and routes. */
const GROUPS = [1, 3, 5, 7, 9, 11];
const BUFFER_BYTES = 4 * 1024 * 1024;

function listening(socket: NetlinkSocket): NetlinkSocket {
  joinGroups(socket, GROUPS, BUFFER_BYTES);
  return socket;
}

/** What the kernel has told since the last call, one line for each event. */
export function readEvents(kernel: KernelUnderTest): readonly string[] {
  return SIDES.flatMap((side) => {
    const events: object[] = [];
    const links: Link[] = [];
    const outcome = drain(kernel.listeners[side], (message) => {
      const link = readLink(message);
      if (link !== undefined) links.push(link);
      const event = link === undefined ? readEvent(message) : { link };
      if (event !== undefined) events.push(event);
    });
    const lines = events.map((event) => `${side}: ${asText(event)}`).map(hiding(links));
    return outcome === "lost" ? [...lines, `${side}: lost`] : lines;
  });
}

function readEvent(message: MessageCursor): object | undefined {
  if (message.type === DELETE_LINK) return { deletedLink: message.view.getInt32(message.start + 4, true) };
  const neighbour = readNeighbourChange(message);
  if (neighbour !== undefined && isMulticast(neighbour.neighbour.address)) return undefined;
  return neighbour ?? readForwardingChange(message) ?? readAddressChange(message) ?? readRouteChange(message);
}

/** The kernel makes such neighbours itself. */
function isMulticast({ family, value }: Address): boolean {
  return family === 4 ? value >> 28n === 0xen : value >> 120n === 0xffn;
}

/** What the product's readers see, one line for each thing, in a fixed order. */
export function describeState(kernel: KernelUnderTest): readonly string[] {
  return SIDES.flatMap((side) => {
    const socket = kernel.sockets[side];
    const links = listLinks(socket);
    const lines = [
      ...links.map((link) => ({ link, ...findVxlan(socket, link.name), byIndex: findLinkByIndex(socket, link.index) })),
      ...listAddresses(socket).map((address) => ({ address })),
      ...listRoutes(socket).map((route) => ({ route })),
      ...listMainRoutes(socket).map((mainRoute) => ({ mainRoute })),
      ...listHostRoutes(socket).map((hostRoute) => ({ hostRoute })),
      // The kernel makes others itself, for multicast.
      ...listNeighbours(socket)
        .filter(({ isPermanent }) => isPermanent)
        .map((neighbour) => ({ neighbour })),
      ...links.flatMap(({ index }) => listForwardingEntries(socket, index)).map((entry) => ({ entry })),
    ];
    const hide = hiding(links);
    return lines.map((line) => hide(`${side}: ${asText(line)}`)).toSorted();
  });
}

/** The kernel chooses the MAC of an IFB device at random. */
function hiding(links: readonly Link[]): (text: string) => string {
  const devices = links.filter(({ kind }) => kind === "ifb");
  const masked = devices.map(({ mac }) => [mac.toHex(), linkLocal(mac)] as const);
  return (text) => masked.reduce((left, [mac, own]) => left.replaceAll(mac, "random").replaceAll(own, "its own"), text);
}

function linkLocal(mac: Uint8Array): string {
  const bytes = Uint8Array.of(0xfe, 0x80, 0, 0, 0, 0, 0, 0, ...mac.subarray(0, 3), 0xff, 0xfe, ...mac.subarray(3));
  bytes[8] = (bytes[8] ?? 0) ^ 2;
  const address = addressFromBytes(bytes);
  return address === undefined ? "" : formatAddress(address);
}

/** Addresses and MACs in the usual form; the order of fields does not matter. */
function asText(value: unknown): string {
  return JSON.stringify(plain(value));
}

function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return value.toHex();
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return typeof value === "bigint" ? String(value) : value;
  if ("family" in value && "value" in value && typeof value.value === "bigint")
    return formatAddress({ family: value.family === 4 ? 4 : 6, value: value.value });
  const fields = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(fields.map(([name, field]) => [name, plain(field)]));
}
