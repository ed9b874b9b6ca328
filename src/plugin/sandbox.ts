/**
 * The two network namespaces of an attachment, open for requests, and the links
 * that already exist in them. These are checked first, so that a container that
 * cannot be wired takes no address.
 */
import { PluginError } from "../errors.ts";
import type { Address } from "../ip/address.ts";
import { formatMac } from "../ip/mac.ts";
import { isMarkOfInterface } from "../ipam/link-mark.ts";
import type { HostKernel } from "../linux/host-kernel.ts";
import { closeNetlinkSocket, type NetlinkSocket } from "../linux/netlink-socket.ts";
import type { Netns } from "../linux/netns.ts";
import { findLink, type Link } from "../linux/rtnetlink/link.ts";
import { ALLOWED_SOURCES_GROUP } from "../linux/rtnetlink/own-devices.ts";
import { quoted } from "../quote.ts";
import { addressesRoutedTo } from "./former-addresses.ts";
import type { Workload } from "./workload.ts";

export interface Sandbox {
  readonly kernel: HostKernel;
  readonly netns: Netns;
  readonly host: NetlinkSocket;
  readonly container: NetlinkSocket;
}

export function openSandbox(kernel: HostKernel, path: string): Sandbox {
  const netns = kernel.openNetns(path);
  if (netns === undefined) {
    throw new PluginError("netns-invalid", `Cannot open network namespace ${quoted(path)}: no such file`);
  }
  let container: NetlinkSocket | undefined;
  try {
    container = kernel.openSocketIn(netns, "route");
    return { kernel, netns, container, host: kernel.openSocket("route") };
  } catch (failure) {
    if (container !== undefined) closeNetlinkSocket(container);
    kernel.closeNetns(netns);
    throw failure;
  }
}

export function closeSandbox({ kernel, netns, host, container }: Sandbox): void {
  closeNetlinkSocket(host);
  closeNetlinkSocket(container);
  kernel.closeNetns(netns);
}

/**
 * Throws if the runtime has removed the container since the call began, as it does with one that it gives up: a newer
 * sandbox of the same pod may have the endpoint and the host link by now.
 */
export function requireContainer({ kernel, netns }: Sandbox): void {
  if (kernel.isNetnsAtPath(netns)) return;
  const title = `network namespace ${quoted(netns.path)}`;
  throw new PluginError("netns-invalid", `Cannot attach the container: ${title} was removed during the call`);
}

/** What an ADD finds in the namespaces. */
export type Found =
  /** No link of this name in the container; `stale` is a host link left by an earlier sandbox of the same pod. */
  | { readonly kind: "nothing"; readonly stale?: Link }
  /**
   * The links that an earlier ADD of the same attachment made, the addresses they are wired for, the group of the
   * host's, and whether other sources are allowed too.
   */
  | {
      readonly kind: "own-links";
      readonly addresses: readonly Address[];
      readonly group: number | undefined;
      readonly allowsSources: boolean;
    };

/** The host's link of the attachment's name. */
export function findHostLink({ host }: Sandbox, { hostInterface }: Workload): Link | undefined {
  return findLink(host, hostInterface);
}

/**
 * `before`: the host's link when the call began. One that has come since is not left by an earlier sandbox of the pod: if
 * the orchestrator's API responds late, the next sandbox may be attached by then.
 */
export function findExisting({ host, container }: Sandbox, workload: Workload, before: Link | undefined): Found {
  const inside = findLink(container, workload.ifname);
  const outside = findLink(host, workload.hostInterface);
  if (inside !== undefined) {
    const isMarked = outside?.alias === workload.mark;
    if (isOwn(inside, workload) && outside !== undefined && isMarked) {
      const { group, index } = outside;
      const allowsSources = group === ALLOWED_SOURCES_GROUP;
      return { kind: "own-links", addresses: addressesRoutedTo(host, index), group, allowsSources };
    }
    const state = isMarked && inside.kind === "veth" ? otherMac(inside, workload) : "";
    throw new PluginError(
      "interface-exists",
      `Cannot create interface "${workload.ifname}": the container already has an interface of this name${state}`,
      { details: "run DEL for the earlier attachment first, with the network name of its ADD" },
    );
  }
  if (outside === undefined) return { kind: "nothing" };
  const owner = foreignOwner(outside, workload);
  if (owner === undefined) {
    if (outside.alias !== workload.mark && outside.index !== before?.index) throw attachedMeanwhile(workload);
    return { kind: "nothing", stale: outside };
  }
  const state = `the host already has a link of this name, ${owner}`;
  throw new PluginError("interface-exists", `Cannot create host interface "${workload.hostInterface}": ${state}`);
}

function attachedMeanwhile({ hostInterface }: Workload): PluginError {
  return new PluginError(
    "try-again-later",
    `Cannot create host interface "${hostInterface}": another container of the pod was attached during the call`,
  );
}

/** A repeated ADD does not change the MAC of a link in use. */
function otherMac(inside: Link, { mac }: Workload): string {
  return `, with MAC ${formatMac(inside.mac)} instead of ${formatMac(mac)}`;
}

/** Describes the owner of the host's link; `undefined` if it is this attachment or an earlier sandbox of the same pod. */
function foreignOwner({ kind, alias }: Link, { mark, pod, ifname }: Workload): string | undefined {
  if (kind !== "veth") return `which is not a veth (${kind ?? "a device"})`;
  if (alias === undefined || alias === mark || (pod !== undefined && isMarkOfInterface(ifname, alias)))
    return undefined;
  return `which belongs to another container ("${alias}")`;
}

/** Whether the container's link is the one that ADD made for this workload. */
export function isOwn(link: Link, workload: Workload): boolean {
  return link.kind === "veth" && workload.mac.every((byte, index) => link.mac[index] === byte);
}
