/**
 * Carries out a wiring plan.
 *
 *   1  create both ends, down, the container's in its namespace, and mark the host's: one system call. The kernel tries the
 *      second request even if it refuses the first, so that request names the new link by a group that no other link is in
 *   2  host: sysctls; then up, the container's MAC, and the routes to it
 *   3  container: sysctls; then addresses, up, neighbours, routes, in this order in one system call
 *
 * The container cannot send before its addresses are set, and a killed process
 * leaves no link without the mark of its owner. Every request may be repeated, so
 * a second ADD uses this file too.
 */
import { effect, effectOf } from "../effect.ts";
import { PluginError } from "../errors.ts";
import { formatPrefix, type InterfaceAddress, isSamePrefix, singlePrefix } from "../ip/prefix.ts";
import type { Sysctls } from "../linux/host-kernel.ts";
import { isKernelError } from "../linux/kernel-error.ts";
import { echoed, type NetlinkRequest } from "../linux/netlink/request.ts";
import { attempt, type NetlinkSocket, perform } from "../linux/netlink-socket.ts";
import { ensureAddress } from "../linux/rtnetlink/address.ts";
import {
  changeLink,
  changeLinkGroup,
  deleteLink,
  findLink,
  findLinkByIndex,
  hasLink,
  type Link,
  readLink,
} from "../linux/rtnetlink/link.ts";
import type { LinkRemoval } from "../linux/rtnetlink/link-removal.ts";
import { setNeighbour } from "../linux/rtnetlink/neighbour.ts";
import { ALLOWED_SOURCES_GROUP } from "../linux/rtnetlink/own-devices.ts";
import { addRoute, listRoutes, MAIN_TABLE, type Route, replaceRoute } from "../linux/rtnetlink/route.ts";
import { addRule } from "../linux/rtnetlink/rule.ts";
import { createVeth } from "../linux/rtnetlink/veth.ts";
import { leadsToNode } from "../routing/workload-route.ts";
import { formerAddresses, unwireAddresses } from "./former-addresses.ts";
import type { Found, Sandbox } from "./sandbox.ts";
import type { PlannedRoute, PlannedSysctl, WiringPlan } from "./wiring-plan.ts";

/** Both ends of an attachment's links. */
export interface Wired {
  readonly host: LinkEnd;
  readonly container: LinkEnd;
}

type LinkEnd = Pick<Link, "index" | "name" | "mac" | "mtu">;

export interface WiringOptions {
  /** The links, if they are new and the kernel returned them. */
  readonly made: Wired | undefined;
  readonly found: Found;
  readonly warn: (message: string) => void;
}

/** Step 1. Returns the new links if the kernel echoes them (Linux 6.2 and later). */
export function createLinks(plan: WiringPlan, sandbox: Sandbox, found: Found): Wired | undefined {
  const made = found.kind === "own-links" ? undefined : createPair(plan, sandbox, found.stale);
  // Before its sources are allowed. An ADD that was killed may have created the links and not marked them.
  if (plan.host.sourcePrefixes.length > 0 && !(found.kind === "own-links" && found.allowsSources)) {
    const { host } = made ?? linksOf(plan, sandbox);
    effect("mark the link of further sources", () =>
      perform(sandbox.host, [changeLink(host, { group: ALLOWED_SOURCES_GROUP })]),
    );
  }
  return made;
}

function createPair(plan: WiringPlan, sandbox: Sandbox, former: Link | undefined): Wired | undefined {
  const { host, container } = plan;
  const stale = former === undefined ? [] : [deleteLink(former)];
  const group = groupOfNew(host.mark);
  const create = createVeth({
    host: { name: host.name, mac: host.mac, state: "down", group },
    peer: { name: container.name, mac: container.mac, netnsFd: sandbox.netns.fd },
    ...(plan.mtu === undefined ? {} : { mtu: plan.mtu }),
    queues: plan.queues,
  });
  const mark = changeLinkGroup(group, {
    alias: host.mark,
    ...(host.ipv4 === undefined ? {} : { ipv4: host.ipv4 }),
  });
  let born: Link | undefined;
  const outcomes = effect("create links", () =>
    attempt(sandbox.host, [...stale, echoed(create), mark], (message) => {
      born ??= readLink(message);
    }),
  );
  const [removed, ...refusals] = stale.length > 0 ? outcomes : [undefined, ...outcomes];
  // The kernel may have removed it first: it deletes the links of a namespace shortly after the namespace.
  if (removed !== undefined && !isKernelError(removed, "ENODEV")) throw removed;
  for (const refusal of refusals) if (refusal !== undefined) throw refusal;
  return pairOf(born, plan);
}

/** Groups that administrators assign are small, and those of removals larger. */
const LOWEST_NEW_GROUP = 0x2000_0000;

/** Of a link that is being created; step 2 ends it. */
function groupOfNew(mark: string): number {
  return LOWEST_NEW_GROUP + (Bun.hash.crc32(mark) % LOWEST_NEW_GROUP);
}

/** Marks links whose containers may use other sources too; a repeated ADD keeps the group of an administrator. */
function groupOf({ host }: WiringPlan, found: Found): { readonly group?: number } {
  if (host.sourcePrefixes.length > 0) return { group: ALLOWED_SOURCES_GROUP };
  const isOurs = found.kind === "nothing" || found.allowsSources || found.group === groupOfNew(host.mark);
  return isOurs ? { group: 0 } : {};
}

/** The host's end contains the index of its peer, which is as requested; the kernel chooses the same MTU for both. */
function pairOf(host: Link | undefined, { container: { name, mac } }: WiringPlan): Wired | undefined {
  if (host?.peerIndex === undefined) return undefined;
  return { host, container: { index: host.peerIndex, name, mac, mtu: host.mtu } };
}

/** Steps 2 and 3, for the links that were just made, or else for those that exist. */
export function wireLinks(plan: WiringPlan, sandbox: Sandbox, options: WiringOptions): Wired {
  const { host, container } = options.made ?? linksOf(plan, sandbox);
  if (options.found.kind === "own-links") {
    const wanted = plan.container.addresses.map(({ address }) => address);
    unwireAddresses(formerAddresses(options.found.addresses, wanted), {
      host: { socket: sandbox.host, linkIndex: host.index },
      container: { socket: sandbox.container, linkIndex: container.index },
    });
  }
  setSysctls(plan.host.sysctls, sandbox.kernel, options);
  effect("wire the host", () => {
    const { neighbours, routes } = plan.host;
    const first = [
      changeLink(host, { state: "up", ...groupOf(plan, options.found) }),
      ...neighbours.map((neighbour) => setNeighbour({ ...neighbour, linkIndex: host.index })),
    ];
    performWithRoutes(sandbox.host, first, { link: host, planned: routes, whenTaken: "refuse" });
  });
  sandbox.kernel.withSysctlsOf(sandbox.netns, (inside) => setSysctls(plan.container.sysctls, inside, options));
  effect("wire the container", () => {
    const { addresses, neighbours, routes } = plan.container;
    const first = [
      ...addresses.map((address) => ensureAddress({ ...address, linkIndex: container.index })),
      changeLink(container, { state: "up" }),
      ...neighbours.map((neighbour) => setNeighbour({ ...neighbour, linkIndex: container.index })),
    ];
    const behind = performWithRoutes(sandbox.container, first, {
      link: container,
      planned: routes,
      whenTaken: "lower priority",
    });
    routeBySource(sandbox.container, container, { addresses, routes: behind });
  });
  // The container's end is ready once it is up. The kernel activates the host's end a little later and drops packets
  // until then; querying the link makes it do so now (Linux 6.8 and later).
  hasLink(sandbox.host, host.index);
  return { host, container };
}

/** Removes the host's end, and with it the container's. If it does not exist, that is success. */
export function removeLink(socket: NetlinkSocket, link: Link): void {
  const [refusal] = effect("delete link", () => attempt(socket, [deleteLink(link)]));
  if (refusal !== undefined && !isKernelError(refusal, "ENODEV")) throw refusal;
}

/** As `removeLink`, with the given way to remove a host link. */
export async function removeHostLink(link: Link, remove: LinkRemoval["remove"]): Promise<void> {
  const refusal = await effectOf("delete link", () => remove(link));
  if (refusal !== undefined) throw refusal;
}

/** The links that exist. */
export function linksOf({ host, container }: WiringPlan, sandbox: Sandbox): Wired {
  return {
    // The next sandbox of the pod may have replaced it.
    host: linkNamed(sandbox.host, host.name, ({ alias }) => alias === host.mark),
    container: linkNamed(sandbox.container, container.name),
  };
}

function linkNamed(socket: NetlinkSocket, name: string, isWanted = (_: Link) => true): Link {
  const link = findLink(socket, name);
  if (link !== undefined && isWanted(link)) return link;
  throw new PluginError("kernel-refused", `Cannot wire link "${name}": it has disappeared`);
}

function setSysctls(sysctls: readonly PlannedSysctl[], kernel: Sysctls, { made, warn }: WiringOptions): void {
  for (const { name, value, need, whenNew } of sysctls) {
    const way = made === undefined ? undefined : whenNew;
    if (way === "set at creation") continue;
    try {
      // Writing some sysctls takes a lock of the whole kernel, even if the value is the same.
      if (way !== "write without reading" && kernel.readSysctl(name) === value) continue;
      const outcome = effect(`sysctl ${name}`, () => kernel.writeSysctl(name, value));
      if (outcome === "written" || need === "optional") continue;
      throw new PluginError(
        "kernel-refused",
        `Cannot set sysctl "${name}" to "${value}": this kernel does not have it`,
      );
    } catch (failure) {
      if (need !== "optional") throw failure;
      warn(failure instanceof Error ? failure.message : String(failure));
    }
  }
}

/** A lower priority than any existing route. */
const SECOND_PRIORITY = 2000;

interface RoutesOfLink {
  readonly link: LinkEnd;
  readonly planned: readonly PlannedRoute[];
  /**
   * On the host, a destination that another link serves is refused: another container has the address. But a route to
   * another node is replaced: IPAM has given the address to this container, and the node agent does not know it yet. In
   * a container with several interfaces, the first one keeps the route, and this one gets a lower priority.
   */
  readonly whenTaken: "refuse" | "lower priority";
}

/** Performs the requests, then the routes, in one system call. Returns the routes that got a lower priority. */
function performWithRoutes(
  socket: NetlinkSocket,
  first: readonly NetlinkRequest[],
  of: RoutesOfLink,
): readonly Route[] {
  const routes = of.planned.map((route): Route => ({ ...route, linkIndex: of.link.index }));
  const refusals = attempt(socket, [...first, ...routes.map(addRoute)]);
  for (const refusal of refusals.slice(0, first.length)) if (refusal !== undefined) throw refusal;

  const again: Route[] = [];
  const moved: Route[] = [];
  refusals.slice(first.length).forEach((refusal, index) => {
    const route = routes[index];
    if (refusal === undefined || route === undefined) return;
    if (isKernelError(refusal, "EEXIST")) {
      const holders = routesTo(socket, route);
      if (holders.some(({ linkIndex }) => linkIndex === of.link.index)) return;
      if (of.whenTaken === "refuse") {
        if (!holders.some(leadsToNode)) throw takenBy(socket, route, holders[0]?.linkIndex);
        moved.push(route);
        return;
      }
      // A route is also refused while the route to its gateway is missing.
    } else if (again.length === 0) throw refusal;
    again.push({ ...route, priority: route.priority ?? SECOND_PRIORITY + of.link.index });
  });
  if (moved.length > 0) perform(socket, moved.map(replaceRoute));
  if (again.length > 0) perform(socket, again.map(addRoute));
  return again;
}

/**
 * What a container sends from the addresses of its second interface leaves through that interface: its replies too. The
 * host drops packets from addresses that belong to another link.
 */
function routeBySource(
  socket: NetlinkSocket,
  link: LinkEnd,
  { addresses, routes }: { readonly addresses: readonly InterfaceAddress[]; readonly routes: readonly Route[] },
): void {
  const table = SECOND_PRIORITY + link.index;
  const own = routes.filter((route) => route.table === undefined);
  if (own.length === 0) return;
  const requests = [
    ...own.map((route) => addRoute({ ...route, table, ...(route.gateway?.family === 4 ? { isOnLink: true } : {}) })),
    ...addresses.map(({ address }) => addRule({ source: singlePrefix(address), table, priority: SECOND_PRIORITY })),
  ];
  for (const refusal of attempt(socket, requests)) {
    if (refusal !== undefined && !isKernelError(refusal, "EEXIST")) throw refusal;
  }
}

/** The routes to the destination that exist already. */
function routesTo(socket: NetlinkSocket, { destination, table = MAIN_TABLE }: Route): readonly Route[] {
  return listRoutes(socket, destination.network.family)
    .filter((route) => route.kind === "unicast" && route.table === table)
    .filter((route) => isSamePrefix(route.destination, destination));
}

function takenBy(socket: NetlinkSocket, { destination }: Route, holder: number | undefined): PluginError {
  const name = holder === undefined ? undefined : findLinkByIndex(socket, holder)?.name;
  const state = `the host already has one${name === undefined ? "" : `, to interface "${name}"`}`;
  return new PluginError("kernel-refused", `Cannot add route ${formatPrefix(destination)}: ${state}`);
}
