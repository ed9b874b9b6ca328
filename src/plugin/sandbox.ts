/**
 * The two network namespaces of an attachment, open for requests, and what is
 * in them already. Looking comes before anything is taken: a container that
 * cannot be wired costs no address.
 */
import { PluginError } from "../errors.ts";
import { closeNetlinkSocket, type NetlinkSocket, openNetlinkSocket } from "../linux/netlink-socket.ts";
import { closeNetns, type Netns, openNetlinkSocketIn, openNetns } from "../linux/netns.ts";
import { findLink, type Link } from "../linux/rtnetlink/link.ts";
import { isMarkOfInterface } from "./link-mark.ts";
import type { Workload } from "./workload.ts";

export interface Sandbox {
  readonly netns: Netns;
  readonly host: NetlinkSocket;
  readonly container: NetlinkSocket;
}

export function openSandbox(path: string): Sandbox {
  const netns = openNetns(path);
  if (netns === undefined) {
    throw new PluginError("netns-invalid", `Cannot open network namespace "${path}": there is no such file`);
  }
  let container: NetlinkSocket | undefined;
  try {
    container = openNetlinkSocketIn(netns, "route");
    return { netns, container, host: openNetlinkSocket("route") };
  } catch (failure) {
    if (container !== undefined) closeNetlinkSocket(container);
    closeNetns(netns);
    throw failure;
  }
}

export function closeSandbox({ netns, host, container }: Sandbox): void {
  closeNetlinkSocket(host);
  closeNetlinkSocket(container);
  closeNetns(netns);
}

/** What an ADD finds. */
export type Found =
  /** Nothing of this name; `stale` is the host link that a dead sandbox of the same pod left. */
  | { readonly kind: "nothing"; readonly stale?: Link }
  /** The links that an earlier ADD of this very attachment made. */
  | { readonly kind: "own-links" };

export function lookInto({ host, container }: Sandbox, workload: Workload): Found {
  const inside = findLink(container, workload.ifname);
  const outside = findLink(host, workload.hostInterface);
  if (inside !== undefined) {
    if (isOwn(inside, workload) && outside?.alias === workload.mark) return { kind: "own-links" };
    throw new PluginError(
      "interface-exists",
      `Cannot create interface "${workload.ifname}": the container has one of this name already`,
      { details: "an earlier attachment needs a DEL first, with the network name it was made with" },
    );
  }
  if (outside === undefined) return { kind: "nothing" };
  const owner = strangerOn(outside, workload);
  if (owner === undefined) return { kind: "nothing", stale: outside };
  const state = `the host has a link of this name that is ${owner}`;
  throw new PluginError("interface-exists", `Cannot create host interface "${workload.hostInterface}": ${state}`);
}

/** Whose the host's link is, unless it is this attachment's, or that of a former sandbox of the same pod. */
function strangerOn({ kind, alias }: Link, { mark, pod, ifname }: Workload): string | undefined {
  if (kind !== "veth") return `no end of a container (${kind ?? "a device"})`;
  if (alias === undefined || alias === mark || (pod !== undefined && isMarkOfInterface(ifname, alias)))
    return undefined;
  return `another container's ("${alias}")`;
}

/** Whether the container's link is the one that ADD made for this workload. */
export function isOwn(link: Link, workload: Workload): boolean {
  return link.kind === "veth" && workload.mac.every((byte, index) => link.mac[index] === byte);
}
