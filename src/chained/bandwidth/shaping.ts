/**
 * Attaches token buckets to the links of a container, and removes them.
 *
 *   host ──> [bucket: ingress] veth ═══ eth0 container
 *   host <── [bucket: egress] IFB <── redirect ── ingress hook of veth <── container
 *
 * The redirection is added last and removed first: traffic has a complete path at
 * every moment. Applying twice changes nothing. Removing succeeds if anything is gone
 * already, and does not touch what others attached to the same link.
 */
import { isKernelError } from "../../linux/kernel-error.ts";
import type { NetlinkRequest } from "../../linux/netlink/request.ts";
import { attempt, type NetlinkSocket, perform } from "../../linux/netlink-socket.ts";
import { changeLink, createIfb, deleteLink, findLink, type Link } from "../../linux/rtnetlink/link.ts";
import {
  deleteIngressHook,
  deleteTokenBucket,
  ensureIngressHook,
  findIngressHook,
  listQdiscs,
  type ShapedLink,
  setTokenBucket,
} from "../../linux/rtnetlink/qdisc.ts";
import {
  deleteIngressRedirect,
  type IngressFilter,
  isRedirect,
  isRedirectTo,
  listIngressFilters,
  redirectIngress,
} from "../../linux/rtnetlink/redirect.ts";
import type { Bandwidth, Rate } from "./bandwidth.ts";
import { type IfbNames, isIfbOf } from "./ifb-identity.ts";
import { tokenBucketOf } from "./token-bucket.ts";

/** The link that is shaped, and the names of the IFB device of its attachment. */
export interface ShapedAttachment {
  readonly veth: Link;
  readonly names: IfbNames;
}

/** Applies the bandwidth, whatever was set before. Returns the device that shapes what the container sends. */
export function applyShaping(socket: NetlinkSocket, at: ShapedAttachment, bandwidth: Bandwidth): Link | undefined {
  try {
    const ifb = bandwidth.egress === undefined ? undefined : shapeEgress(socket, at, bandwidth.egress);
    if (ifb === undefined) removeEgress(socket, at.veth, findIfbs(socket, at.names));
    shapeIngress(socket, at.veth, bandwidth.ingress);
    return ifb;
  } catch (failure) {
    undoShaping(socket, at);
    throw failure;
  }
}

/**
 * Removes all shaping: from the link, if it is known, and the devices that shape its
 * incoming traffic. If the link is not known, it is found by the redirections to the devices.
 */
export function removeShaping(socket: NetlinkSocket, veth: ShapedLink | undefined, ifbs: readonly Link[]): void {
  detachShaping(socket, veth, ifbs);
  attemptRemoval(socket, ifbs.map(deleteLink));
}

/** Like `removeShaping`, but does not delete the devices. Returns whether a link had a token bucket. */
export function detachShaping(socket: NetlinkSocket, veth: ShapedLink | undefined, ifbs: readonly Link[]): boolean {
  const links = veth === undefined ? ifbs.flatMap((ifb) => findRedirectedLinks(socket, ifb)) : [veth];
  let hadBucket = false;
  for (const link of links) {
    removeRedirection(socket, link, ifbs);
    if (attemptRemoval(socket, [deleteTokenBucket(link)])) hadBucket = true;
  }
  return hadBucket;
}

/** The devices that shape what the attachment sends: at most one, or two if upstream's plugin left one. */
export function findIfbs(socket: NetlinkSocket, names: IfbNames): readonly Link[] {
  const found: Link[] = [];
  for (const name of names.candidates) {
    const link = findLink(socket, name);
    if (link !== undefined && isIfbOf(link, names)) found.push(link);
  }
  return found;
}

/** Ignores its own failures: the caller throws the reason why ADD failed, and the DEL that follows cleans up. */
function undoShaping(socket: NetlinkSocket, { veth, names }: ShapedAttachment): void {
  try {
    removeShaping(socket, veth, findIfbs(socket, names));
  } catch {}
}

function shapeEgress(socket: NetlinkSocket, { veth, names }: ShapedAttachment, rate: Rate): Link {
  const ifb = ensureIfb(socket, veth, names);
  const known = listIngressFilters(socket, veth).find(isRedirect);
  const [bucket, hook, redirect] = attempt(socket, [
    setTokenBucket(ifb, tokenBucketOf(rate, ifb.mtu)),
    ensureIngressHook(veth),
    redirectIngress(veth, ifb.index, known),
  ]);
  if (bucket !== undefined) throw bucket;
  if (hook !== undefined && findIngressHook(socket, veth)?.kind !== "clsact") throw hook;
  if (redirect !== undefined) throw redirect;
  return ifb;
}

function shapeIngress(socket: NetlinkSocket, veth: Link, rate: Rate | undefined): void {
  if (rate === undefined) attemptRemoval(socket, [deleteTokenBucket(veth)]);
  else perform(socket, [setTokenBucket(veth, tokenBucketOf(rate, veth.mtu))]);
}

/** Creates the device and sets its alias in one batch, so that GC recognises a device that a killed process left. */
function ensureIfb(socket: NetlinkSocket, { mtu }: Link, names: IfbNames): Link {
  const name = ifbNameIn(socket, names);
  const change = changeLink({ name }, { alias: names.alias, mtu, state: "up" });
  const [made, changed] = attempt(socket, [createIfb({ name, mtu, state: "up" }), change]);
  if (made !== undefined && !isKernelError(made, "EEXIST")) throw made;
  if (changed !== undefined) throw changed;
  const ifb = findLink(socket, name);
  if (ifb !== undefined) return ifb;
  throw new Error(`link "${name}" disappeared right after it was created`);
}

/** The name of the attachment's device, existing or to be created: not that of a device that shapes for another. */
function ifbNameIn(socket: NetlinkSocket, names: IfbNames): string {
  const [shared, own] = names.candidates;
  const other = findLink(socket, shared);
  if (other === undefined) return findLink(socket, own) === undefined ? shared : own;
  return isIfbOf(other, names) ? shared : own;
}

function removeEgress(socket: NetlinkSocket, veth: ShapedLink, ifbs: readonly Link[]): void {
  removeRedirection(socket, veth, ifbs);
  attemptRemoval(socket, ifbs.map(deleteLink));
}

/** The links whose incoming traffic is redirected to the device. */
function findRedirectedLinks(socket: NetlinkSocket, ifb: Link): readonly ShapedLink[] {
  const found: ShapedLink[] = [];
  for (const { kind, linkIndex } of listQdiscs(socket)) {
    if (kind !== "ingress" && kind !== "clsact") continue;
    const link = { index: linkIndex, name: String(linkIndex) };
    if (listIngressFilters(socket, link).some((filter) => isRedirectTo(filter, ifb.index))) found.push(link);
  }
  return found;
}

/** Removes the hook too if nobody else uses it; a hook without any filter was left by an interrupted call. */
function removeRedirection(socket: NetlinkSocket, link: ShapedLink, ifbs: readonly Link[]): void {
  const hook = findIngressHook(socket, link);
  if (hook === undefined) return;
  const targets = [NO_LINK, ...ifbs.map(({ index }) => index)];
  const filters = listIngressFilters(socket, link);
  const own = filters.filter((filter) => targets.some((target) => isRedirectTo(filter, target)));
  if (hook.kind === "ingress" && own.length === filters.length) attemptRemoval(socket, [deleteIngressHook(link)]);
  else attemptRemoval(socket, redirectionRemovals(link, own, filters));
}

/** If no other filter has the same priority, the whole priority is deleted: otherwise it would stay, without filters. */
function redirectionRemovals(
  link: ShapedLink,
  own: readonly IngressFilter[],
  filters: readonly IngressFilter[],
): readonly NetlinkRequest[] {
  if (own.length === 0) return [];
  const isShared = filters.some((filter) => filter.isInPlace && !own.includes(filter));
  return isShared ? own.map((filter) => deleteIngressRedirect(link, filter)) : [deleteIngressRedirect(link)];
}

/** The index in a redirection whose device was deleted. */
const NO_LINK = 0;

/** The kernel returns EINVAL if something else is attached where the object to remove was. Returns whether something was removed. */
function attemptRemoval(socket: NetlinkSocket, requests: readonly NetlinkRequest[]): boolean {
  if (requests.length === 0) return false;
  const errors = attempt(socket, requests);
  for (const error of errors) {
    if (error !== undefined && !isKernelError(error, "ENOENT", "ENODEV", "EINVAL")) throw error;
  }
  return errors.includes(undefined);
}
