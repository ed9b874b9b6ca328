/** Whether an event of the kernel contradicts the plan. Events about our own changes do not, so they cost no comparison. Pure. */
import { type Address, formatAddress, isSameAddress } from "../../ip/address.ts";
import { formatMac } from "../../ip/mac.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import type { Link } from "../../linux/rtnetlink/link.ts";
import type { NetworkEvent } from "../../linux/rtnetlink/network-monitor.ts";
import type { Route } from "../../linux/rtnetlink/route.ts";
import { hasSamePlace, isServedBy } from "../../routing/compare-routes.ts";
import type { PlannedRoute, TunnelName } from "../../routing/plan.ts";
import type { AppliedPlan } from "./applied-plan.ts";
import { withoutLoopback } from "./kernel-network.ts";
import { isBetweenNodes, kernelRoute, type RouteLinks } from "./planned-route.ts";
import { isHelping } from "./route-steps.ts";
import { TUNNEL_NAMES, TUNNELS } from "./tunnel-device.ts";

export interface CheckedState {
  readonly applied: AppliedPlan;
  /** By destination, as `formatPrefix` writes it: also if the kernel refused it. */
  readonly planned: (destination: string) => PlannedRoute | undefined;
  readonly tunnels: ReadonlyMap<TunnelName, Link>;
  /** The planned address of the device. */
  readonly tunnelAddress: (tunnel: TunnelName) => Address | undefined;
  /** Links of this host with addresses: tunnels and gateways are reached through them. */
  readonly hostLinks: readonly Link[];
  readonly links: RouteLinks;
  /** A device or the link of a gateway is missing: a new address may help. */
  readonly isIncomplete: boolean;
}

type EventOf<Kind> = Extract<NetworkEvent, { kind: Kind }>;

const DEVICE_NAMES: ReadonlySet<string> = new Set(TUNNEL_NAMES.map((name) => TUNNELS[name].deviceName));

export class EventCheck {
  private readonly tunnelOfIndex: ReadonlyMap<number, TunnelName>;
  private readonly tunnelIndexes: ReadonlySet<number>;
  private readonly known: ReadonlyMap<number, Link>;

  constructor(private readonly state: CheckedState) {
    this.tunnelOfIndex = new Map(Array.from(state.tunnels, ([name, { index }]) => [index, name]));
    this.tunnelIndexes = new Set(this.tunnelOfIndex.keys());
    this.known = new Map([...state.hostLinks, ...state.tunnels.values()].map((link) => [link.index, link]));
  }

  hasNeighbours(linkIndex: number): boolean {
    return this.tunnelIndexes.has(linkIndex);
  }

  contradicts(event: NetworkEvent): boolean {
    switch (event.kind) {
      case "route":
        return this.isWrongRoute(event.change, withoutLoopback(event.route));
      case "neighbour":
        return this.isWrongNeighbour(event);
      case "forwarding":
        return this.isWrongForwarding(event);
      case "address":
        return this.isWrongAddress(event);
      case "link":
        return event.change === "delete" ? this.known.has(event.linkIndex) : this.isWrongLink(event.link);
    }
  }

  private isWrongRoute(change: "put" | "delete", route: Route): boolean {
    if (isHelping(route)) return false;
    const planned = this.state.planned(formatPrefix(route.destination));
    const wanted = planned && kernelRoute(planned, this.state.links);
    if (wanted === undefined || !hasSamePlace(wanted, route)) {
      return change === "put" && isBetweenNodes(route, this.tunnelIndexes);
    }
    return change === "delete" || !isServedBy(wanted, route);
  }

  /** The own address of a tunnel is reported late: the kernel sets those of IPv6 when it has time. */
  private isWrongAddress({ change, address }: EventOf<"address">): boolean {
    const own = this.ofTunnel(address.linkIndex, this.state.tunnelAddress);
    if (change === "put" && own !== undefined && isSameAddress(own, address.address)) return false;
    return this.known.has(address.linkIndex) || this.state.isIncomplete;
  }

  private isWrongNeighbour({ change, neighbour }: EventOf<"neighbour">): boolean {
    const peer = this.ofTunnel(neighbour.linkIndex, (tunnel) =>
      this.state.applied.peerOfAddress(tunnel, formatAddress(neighbour.address)),
    );
    if (change === "delete") return peer !== undefined;
    if (peer === undefined) return neighbour.isPermanent;
    return !neighbour.isPermanent || formatMac(neighbour.mac) !== peer.mac;
  }

  private isWrongForwarding({ change, entry }: EventOf<"forwarding">): boolean {
    const peer = this.ofTunnel(entry.linkIndex, (tunnel) => this.state.applied.peerOfMac(tunnel, formatMac(entry.mac)));
    const isSame = peer !== undefined && isSameAddress(peer.remote, entry.remote);
    if (change === "delete") return isSame;
    return peer === undefined ? entry.isPermanent : !isSame || !entry.isPermanent;
  }

  /** `undefined` if the link is not a tunnel. */
  private ofTunnel<Found>(linkIndex: number, find: (tunnel: TunnelName) => Found | undefined): Found | undefined {
    const tunnel = this.tunnelOfIndex.get(linkIndex);
    return tunnel && find(tunnel);
  }

  private isWrongLink(link: Link): boolean {
    const known = this.known.get(link.index);
    if (known === undefined) return DEVICE_NAMES.has(link.name);
    if (known.name !== link.name || known.isUp !== link.isUp || known.mtu !== link.mtu) return true;
    return this.tunnelIndexes.has(link.index) && !Bun.deepEquals(known.mac, link.mac);
  }
}
