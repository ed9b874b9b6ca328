/** The same requests to the kernel of this machine and to the model, and what the product's own readers see afterwards. */
import { addressFromBytes, formatAddress } from "../../../src/ip/address.ts";
import { describeErrno } from "../../../src/linux/errno.ts";
import { KernelError } from "../../../src/linux/kernel-error.ts";
import {
  attempt,
  closeNetlinkSocket,
  type NetlinkSocket,
  openNetlinkSocket,
} from "../../../src/linux/netlink-socket.ts";
import { closeNetns, type Netns, openNetns, runInNewNetns } from "../../../src/linux/netns.ts";
import { listAddresses } from "../../../src/linux/rtnetlink/address.ts";
import { listForwardingEntries } from "../../../src/linux/rtnetlink/forwarding-entry.ts";
import { findLinkByIndex, listLinks } from "../../../src/linux/rtnetlink/link.ts";
import { listNeighbours } from "../../../src/linux/rtnetlink/neighbour.ts";
import { listHostRoutes, listMainRoutes, listRoutes } from "../../../src/linux/rtnetlink/route.ts";
import { routeTowards } from "../../../src/linux/rtnetlink/route-lookup.ts";
import { findVxlan } from "../../../src/linux/rtnetlink/vxlan.ts";
import { writeSysctl } from "../../../src/linux/sysctl.ts";
import { Random } from "../../schedule/random.ts";
import { SimulatedHost } from "../simulated-host.ts";
import type { Operation, Side } from "./operation.ts";

/** One kernel with its two namespaces. */
export interface KernelUnderTest {
  readonly sockets: Readonly<Record<Side, NetlinkSocket>>;
  readonly descriptors: Readonly<Record<Side, number>>;
  /** What the kernel does a little later is done. */
  settle(): void;
  close(): void;
}

const SIDES = ["host", "pod"] as const;
const DUPLICATE_DETECTION = "net/ipv6/conf/default/accept_dad";

/** Two new namespaces of this machine. */
export function openRealKernel(): KernelUnderTest {
  const open = (): { readonly socket: NetlinkSocket; readonly netns: Netns } =>
    runInNewNetns(() => {
      // It takes a second or two, and how long a test takes must not decide.
      writeSysctl(DUPLICATE_DETECTION, "0");
      const netns = openNetns("/proc/thread-self/ns/net");
      if (netns === undefined) throw new Error("/proc is not mounted");
      return { socket: openNetlinkSocket("route"), netns };
    });
  const [host, pod] = [open(), open()];
  return {
    sockets: { host: host.socket, pod: pod.socket },
    descriptors: { host: host.netns.fd, pod: pod.netns.fd },
    // A question about a link makes the kernel act on its carrier.
    settle: () => {
      for (const { socket } of [host, pod]) {
        for (const { index } of listLinks(socket)) findLinkByIndex(socket, index);
      }
    },
    close: () => {
      for (const { socket, netns } of [host, pod]) {
        closeNetlinkSocket(socket);
        closeNetns(netns);
      }
    },
  };
}

const SOON_MILLISECONDS = 100;

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
    return [side, { fd: netns.fd, socket: kernel.openSocketIn(netns, "route") }] as const;
  });
  const of = Object.fromEntries(opened) as Record<Side, { readonly fd: number; readonly socket: NetlinkSocket }>;
  return {
    sockets: { host: of.host.socket, pod: of.pod.socket },
    descriptors: { host: of.host.fd, pod: of.pod.fd },
    settle: () => host.settle(SOON_MILLISECONDS),
    close: () => {},
  };
}

/** Returns what the kernel answered, as text. */
export function carryOut(kernel: KernelUnderTest, operation: Operation): string {
  const socket = kernel.sockets[operation.side];
  if (operation.kind === "look up") return hiding(socket)(lookUp(socket, operation));
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
    const hide = hiding(socket);
    return lines.map((line) => hide(`${side}: ${asText(line)}`)).toSorted();
  });
}

/** The kernel chooses the MAC of an IFB device at random. */
function hiding(socket: NetlinkSocket): (text: string) => string {
  const devices = listLinks(socket).filter(({ kind }) => kind === "ifb");
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
