/**
 * What of the plan the kernel has been given, and the requests that a change of the plan needs.
 *
 *   forwarding entries, neighbours ─▶ routes ─▶ removal of routes ─▶ removal of neighbours, forwarding entries
 *
 * In this order no packet meets a route without its entries, and a route that changes is replaced, never missing.
 */
import { formatAddress } from "../../ip/address.ts";
import { deleteForwardingEntry, setForwardingEntry } from "../../linux/rtnetlink/forwarding-entry.ts";
import { deleteNeighbour, setNeighbour } from "../../linux/rtnetlink/neighbour.ts";
import { deleteRoute } from "../../linux/rtnetlink/route.ts";
import type { PlanChange, PlannedPeer, PlannedRoute, RoutePlan, TunnelName } from "../../routing/plan.ts";
import { entriesOf } from "./peer-entries.ts";
import { kernelRoute, type RouteLinks } from "./planned-route.ts";
import { settingSteps } from "./route-steps.ts";
import { put, removal, type Step } from "./steps.ts";

export interface FollowingSteps {
  readonly steps: readonly Step[];
  /** Whether there is a link for every route. */
  readonly isComplete: boolean;
}

export class AppliedPlan {
  private readonly routes = new Map<string, PlannedRoute>();
  private readonly peers = new Map<string, PlannedPeer>();
  /** Which peer a tunnel address and a MAC belong to: an address may pass from one node to another. */
  private readonly owners = new Map<string, string>();

  get routeCount(): number {
    return this.routes.size;
  }

  get peerCount(): number {
    return this.peers.size;
  }

  /** The kernel has all of it, except the routes with these keys. */
  replace({ routes, peers }: RoutePlan, exceptRoutes: ReadonlySet<string>): void {
    this.routes.clear();
    for (const [key, route] of routes) if (!exceptRoutes.has(key)) this.routes.set(key, route);
    this.peers.clear();
    this.owners.clear();
    for (const [key, peer] of peers) this.setPeer(key, peer);
  }

  route(key: string): PlannedRoute | undefined {
    return this.routes.get(key);
  }

  /** `address`: as `formatAddress` writes it. */
  peerOfAddress(tunnel: TunnelName, address: string): PlannedPeer | undefined {
    return this.peers.get(this.owners.get(`${tunnel} ${address}`) ?? "");
  }

  /** `mac`: as `formatMac` writes it. */
  peerOfMac(tunnel: TunnelName, mac: string): PlannedPeer | undefined {
    return this.peers.get(this.owners.get(`${tunnel} ${mac}`) ?? "");
  }

  /** Counts the changed parts of the plan as applied, and returns what must be sent for that. */
  follow(plan: RoutePlan, change: PlanChange, links: RouteLinks): FollowingSteps {
    const [entries, entryRemovals] = this.followPeers(plan, change, links);
    const [routes, routeRemovals] = this.followRoutes(plan, change, links);
    const isComplete = [...change.routes].every((key) => this.routes.has(key) || !plan.routes.has(key));
    return { steps: [...entries, ...routes, ...routeRemovals, ...entryRemovals], isComplete };
  }

  private followPeers(plan: RoutePlan, change: PlanChange, links: RouteLinks): readonly [Step[], Step[]] {
    const [puts, removals]: [Step[], Step[]] = [[], []];
    const formers = Array.from(change.peers, (key) => [key, this.peers.get(key)] as const);
    for (const key of change.peers) {
      const peer = plan.peers.get(key);
      this.setPeer(key, peer);
      const linkIndex = peer && links.tunnels.get(peer.tunnel);
      if (peer === undefined || linkIndex === undefined) continue;
      const { forwarding, neighbour } = entriesOf(peer, linkIndex);
      puts.push(put(setForwardingEntry(forwarding)), put(setNeighbour(neighbour)));
    }
    for (const [, former] of formers) {
      const linkIndex = former && links.tunnels.get(former.tunnel);
      if (former === undefined || linkIndex === undefined) continue;
      const { forwarding, neighbour } = entriesOf(former, linkIndex);
      if (this.peerOfAddress(former.tunnel, formatAddress(former.address)) === undefined) {
        removals.push(removal(deleteNeighbour(neighbour)));
      }
      if (this.peerOfMac(former.tunnel, former.mac) === undefined) {
        removals.push(removal(deleteForwardingEntry(forwarding)));
      }
    }
    return [puts, removals];
  }

  private followRoutes(plan: RoutePlan, change: PlanChange, links: RouteLinks): readonly [Step[], Step[]] {
    const [puts, removals]: [Step[], Step[]] = [[], []];
    for (const key of change.routes) {
      const former = this.routes.get(key);
      const planned = plan.routes.get(key);
      const route = planned && kernelRoute(planned, links);
      if (planned !== undefined && route !== undefined) {
        this.routes.set(key, planned);
        // A route of another program in this place is not replaced.
        const { before, setting, after } = settingSteps(former === undefined ? "add" : "replace", route);
        puts.push(...before, setting, ...after);
        continue;
      }
      this.routes.delete(key);
      const present = former && kernelRoute(former, links);
      if (present !== undefined) removals.push(removal(deleteRoute(present)));
    }
    return [puts, removals];
  }

  private setPeer(key: string, peer: PlannedPeer | undefined): void {
    const former = this.peers.get(key);
    for (const name of former === undefined ? [] : namesOf(former)) {
      if (this.owners.get(name) === key) this.owners.delete(name);
    }
    if (peer === undefined) this.peers.delete(key);
    else this.peers.set(key, peer);
    for (const name of peer === undefined ? [] : namesOf(peer)) this.owners.set(name, key);
  }
}

function namesOf({ tunnel, address, mac }: PlannedPeer): readonly string[] {
  return [`${tunnel} ${formatAddress(address)}`, `${tunnel} ${mac}`];
}
