/**
 * Which events of the kernel may change the addresses or the MTU of the node: those of the host's own links, of default
 * routes, and of networks that the kernel or the configuration of the host routes. Those of workloads, and what routing
 * programs learn, come and go all the time, and are ignored.
 */
import { identity } from "../../identity.ts";
import { addressBits } from "../../ip/address.ts";
import type { NetworkEvent } from "../../linux/rtnetlink/network-monitor.ts";
import { ROUTE_PROTOCOL } from "../../linux/rtnetlink/route.ts";

export class HostChanges {
  /** Index -> what matters of it; `undefined` for links of workloads. */
  private readonly links = new Map<number, string | undefined>();

  isRelevant(event: NetworkEvent): boolean {
    switch (event.kind) {
      case "link":
        return event.change === "put" ? this.putLink(event.link) : this.deleteLink(event.linkIndex);
      case "address":
        return !this.isOfWorkload(event.address.linkIndex);
      case "route": {
        const { destination, protocol } = event.route;
        if (protocol === ROUTE_PROTOCOL.own) return false;
        if (destination.length === 0) return true;
        return isOfConfiguration(protocol) && destination.length < addressBits(destination.network.family);
      }
      default:
        return false;
    }
  }

  private putLink(link: {
    readonly index: number;
    readonly name: string;
    readonly mtu: number;
    readonly isUp: boolean;
  }) {
    const { index, name, mtu, isUp } = link;
    const state = name.startsWith(identity.interfacePrefix) ? undefined : `${name} ${mtu} ${isUp}`;
    const isNew = !this.links.has(index) || this.links.get(index) !== state;
    this.links.set(index, state);
    return isNew && state !== undefined;
  }

  private deleteLink(index: number): boolean {
    const wasOfHost = !this.isOfWorkload(index);
    this.links.delete(index);
    return wasOfHost;
  }

  private isOfWorkload(index: number): boolean {
    return this.links.has(index) && this.links.get(index) === undefined;
  }
}

const { kernel, boot, static: fixed, routerAdvertisement } = ROUTE_PROTOCOL;
/** 16: of DHCP. */
const CONFIGURED: readonly number[] = [kernel, boot, fixed, routerAdvertisement, 16];

function isOfConfiguration(protocol: number | undefined): boolean {
  return protocol === undefined || CONFIGURED.includes(protocol);
}
