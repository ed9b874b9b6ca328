/**
 * Carries a wiring plan out.
 *
 *   1  both ends, down, the container's born in its namespace, and the host's marked: one system call
 *   2  host: sysctls; then up, the container's MAC, and the routes to it
 *   3  container: sysctls; then addresses, up, neighbours, routes, in this order in one system call
 *
 * The container can send nothing before its addresses are right, and a process
 * that is killed leaves no link that does not say whose it is. Every request
 * may be repeated, so a second ADD passes through here too.
 */
import { effect, effectOf } from "../effect.ts";
import { PluginError } from "../errors.ts";
import { formatPrefix, isSamePrefix } from "../ip/prefix.ts";
import { isKernelError } from "../linux/kernel-error.ts";
import { echoed, type NetlinkRequest } from "../linux/netlink/request.ts";
import { attempt, type NetlinkSocket, perform } from "../linux/netlink-socket.ts";
import { runInNetns } from "../linux/netns.ts";
import { ensureAddress } from "../linux/rtnetlink/address.ts";
import {
  changeLink,
  deleteLink,
  findLink,
  findLinkByIndex,
  hasLink,
  type Link,
  readLink,
} from "../linux/rtnetlink/link.ts";
import type { LinkRemoval } from "../linux/rtnetlink/link-removal.ts";
import { setNeighbour } from "../linux/rtnetlink/neighbour.ts";
import { addRoute, listRoutes, MAIN_TABLE, type Route } from "../linux/rtnetlink/route.ts";
import { createVeth } from "../linux/rtnetlink/veth.ts";
import { readSysctl, writeSysctl } from "../linux/sysctl.ts";
import type { Found, Sandbox } from "./sandbox.ts";
import type { PlannedRoute, PlannedSysctl, WiringPlan } from "./wiring-plan.ts";

/** Both ends of an attachment's links. */
export interface Wired {
  readonly host: LinkEnd;
  readonly container: LinkEnd;
}

type LinkEnd = Pick<Link, "index" | "name" | "mac" | "mtu">;

export interface WiringMeans {
  /** The links, where they are new and the kernel told of them. */
  readonly made: Wired | undefined;
  readonly warn: (message: string) => void;
}

/** Step 1. Answers what it made, where the kernel tells it along (Linux 6.2 and later). */
export function createLinks(plan: WiringPlan, sandbox: Sandbox, found: Found): Wired | undefined {
  if (found.kind === "own-links") return undefined;
  const { host, container } = plan;
  const stale = found.stale === undefined ? [] : [deleteLink(found.stale)];
  const create = createVeth({
    host: { name: host.name, mac: host.mac, state: "down" },
    peer: { name: container.name, mac: container.mac, netnsFd: sandbox.netns.fd },
    ...(plan.mtu === undefined ? {} : { mtu: plan.mtu }),
    queues: plan.queues,
  });
  const mark = changeLink(
    { name: host.name },
    { alias: host.mark, ...(host.ipv4 === undefined ? {} : { ipv4: host.ipv4 }) },
  );
  let born: Link | undefined;
  const outcomes = effect("create links", () =>
    attempt(sandbox.host, [...stale, echoed(create), mark], (message) => {
      born ??= readLink(message);
    }),
  );
  const [removed, ...made] = stale.length > 0 ? outcomes : [undefined, ...outcomes];
  // The kernel may have been quicker: a namespace that ends takes its links with it, a moment later.
  if (removed !== undefined && !isKernelError(removed, "ENODEV")) throw removed;
  for (const refusal of made) if (refusal !== undefined) throw refusal;
  return pairOf(born, plan);
}

/** The host's end names the index of the other, which is as it was asked for; the kernel's choice of MTU is one for both. */
function pairOf(host: Link | undefined, { container: { name, mac } }: WiringPlan): Wired | undefined {
  if (host?.peerIndex === undefined) return undefined;
  return { host, container: { index: host.peerIndex, name, mac, mtu: host.mtu } };
}

/** Steps 2 and 3, of the links that were just made, or else of those that are there. */
export function wireLinks(plan: WiringPlan, sandbox: Sandbox, means: WiringMeans): Wired {
  const { host, container } = means.made ?? linksOf(plan, sandbox);
  setSysctls(plan.host.sysctls, means);
  effect("wire the host", () => {
    const { neighbours, routes } = plan.host;
    const first = [
      changeLink(host, { state: "up" }),
      ...neighbours.map((neighbour) => setNeighbour({ ...neighbour, linkIndex: host.index })),
    ];
    performWithRoutes(sandbox.host, first, { link: host, planned: routes, whenTaken: "refuse" });
  });
  runInNetns(sandbox.netns, () => setSysctls(plan.container.sysctls, means));
  effect("wire the container", () => {
    const { addresses, neighbours, routes } = plan.container;
    const first = [
      ...addresses.map((address) => ensureAddress({ ...address, linkIndex: container.index })),
      changeLink(container, { state: "up" }),
      ...neighbours.map((neighbour) => setNeighbour({ ...neighbour, linkIndex: container.index })),
    ];
    performWithRoutes(sandbox.container, first, { link: container, planned: routes, whenTaken: "stand behind" });
  });
  // The container's end is ready when it is up; of the host's the kernel only took note, and drops what is sent
  // until it comes to it. To be asked about the link makes it do so now (from Linux 6.8 on).
  hasLink(sandbox.host, host.index);
  return { host, container };
}

/** Takes the host's end away, and the container's with it. Nothing there is success. */
export function removeLink(socket: NetlinkSocket, link: Link): void {
  const [refusal] = effect("delete link", () => attempt(socket, [deleteLink(link)]));
  if (refusal !== undefined && !isKernelError(refusal, "ENODEV")) throw refusal;
}

/** As `removeLink`, by one of the ways to remove a link of the host. */
export async function removeHostLink(link: Link, remove: LinkRemoval["remove"]): Promise<void> {
  const refusal = await effectOf("delete link", () => remove(link));
  if (refusal !== undefined) throw refusal;
}

function linksOf(plan: WiringPlan, sandbox: Sandbox): Wired {
  return {
    host: linkNamed(sandbox.host, plan.host.name),
    container: linkNamed(sandbox.container, plan.container.name),
  };
}

function linkNamed(socket: NetlinkSocket, name: string): Link {
  const link = findLink(socket, name);
  if (link !== undefined) return link;
  throw new PluginError("kernel-refused", `Cannot wire link "${name}": it vanished`);
}

function setSysctls(sysctls: readonly PlannedSysctl[], { made, warn }: WiringMeans): void {
  for (const { name, value, need, whenNew } of sysctls) {
    const way = made === undefined ? undefined : whenNew;
    if (way === "made so") continue;
    try {
      // Some take a lock of the whole kernel, even to write what is there.
      if (way !== "written unseen" && readSysctl(name) === value) continue;
      const outcome = effect(`sysctl ${name}`, () => writeSysctl(name, value));
      if (outcome === "written" || need === "wished") continue;
      throw new PluginError("kernel-refused", `Cannot set sysctl "${name}" to "${value}": this kernel has none`);
    } catch (failure) {
      if (need !== "wished") throw failure;
      warn(failure instanceof Error ? failure.message : String(failure));
    }
  }
}

/** Behind every route that is there already, whoever made it. */
const SECOND_PRIORITY = 2000;

interface RoutesOfLink {
  readonly link: LinkEnd;
  readonly planned: readonly PlannedRoute[];
  /**
   * On the host a destination that another link serves is refused: somebody else has the address. In a
   * container with several interfaces the first keeps it, and this one stands behind.
   */
  readonly whenTaken: "refuse" | "stand behind";
}

/** The requests and then the routes, in one system call. */
function performWithRoutes(socket: NetlinkSocket, first: readonly NetlinkRequest[], of: RoutesOfLink): void {
  const routes = of.planned.map((route): Route => ({ ...route, linkIndex: of.link.index }));
  const refusals = attempt(socket, [...first, ...routes.map(addRoute)]);
  for (const refusal of refusals.slice(0, first.length)) if (refusal !== undefined) throw refusal;

  const again: NetlinkRequest[] = [];
  refusals.slice(first.length).forEach((refusal, index) => {
    const route = routes[index];
    if (refusal === undefined || route === undefined) return;
    if (isKernelError(refusal, "EEXIST")) {
      const holders = holdersOf(socket, route);
      if (holders.includes(of.link.index)) return;
      if (of.whenTaken === "refuse") throw takenBy(socket, route, holders[0]);
      // A gateway whose own route is still to come is refused with it.
    } else if (again.length === 0) throw refusal;
    again.push(addRoute({ ...route, priority: route.priority ?? SECOND_PRIORITY + of.link.index }));
  });
  if (again.length > 0) perform(socket, again);
}

/** The links that serve the destination already. */
function holdersOf(socket: NetlinkSocket, { destination, table = MAIN_TABLE }: Route): readonly (number | undefined)[] {
  return listRoutes(socket, destination.network.family)
    .filter((route) => route.kind === "unicast" && route.table === table)
    .filter((route) => isSamePrefix(route.destination, destination))
    .map((route) => route.linkIndex);
}

function takenBy(socket: NetlinkSocket, { destination }: Route, holder: number | undefined): PluginError {
  const name = holder === undefined ? undefined : findLinkByIndex(socket, holder)?.name;
  const state = `the host has one already, to ${name === undefined ? "nowhere" : `interface "${name}"`}`;
  return new PluginError("kernel-refused", `Cannot add route ${formatPrefix(destination)}: ${state}`);
}
