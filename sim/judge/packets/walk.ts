/**
 * Follows a packet through the kernels of a simulated cluster, hop by hop, as they are programmed at this moment:
 *
 *   container ── veth ──▶ host: prerouting ─▶ route ─▶ forward ─▶ postrouting ─┬─ veth ──▶ container
 *   host's own packet: output ─▶ route ─▶ postrouting ─────────────────────────┼─ tunnel ─▶ other host ─▶ …
 *                                                                              └─ wire ───▶ other host ─▶ …
 *
 * Reads only; nothing here knows what the product intends.
 */
import { type Address, formatAddress, isSameAddress } from "../../../src/ip/address.ts";
import type { Hook } from "../../../src/linux/nftables/ruleset.ts";
import type { Packet } from "../../../src/policy/judge/packet.ts";
import type { ConnectionState } from "../../../test/support/interpret/packet-marks.ts";
import type { ModelLink, ModelRoute, NetworkNamespace } from "../../kernel/model.ts";
import { resolvesGateway, tunnelEnd } from "./link-layer.ts";
import type { Journey, Machine, Network } from "./network.ts";
import { titleOf } from "./probes.ts";
import { hasAddress, linkOf, lookUpRoute, sourceFor, whyNotForwarded } from "./route-lookup.ts";

const MOST_HOPS = 16;

export interface Departure {
  readonly machine: Machine;
  /** The machine's own, or that of a container on it. */
  readonly namespace: NetworkNamespace;
  readonly packet: Packet;
  readonly state?: ConnectionState;
}

export function walk(network: Network, departure: Departure): Journey {
  return new Walk(network, departure).run();
}

/** The source address of a packet that a program sends without choosing one; `undefined` if there is no route. */
export function chosenSource(namespace: NetworkNamespace, destination: Address): Address | undefined {
  const route = lookUpRoute(namespace, destination);
  return route && sourceFor(namespace, route);
}

/** Where the packet is now: it came in by `iif`, or begins here. */
interface Place {
  readonly machine: Machine;
  readonly namespace: NetworkNamespace;
  readonly iif: Readonly<ModelLink> | undefined;
}

type Step = Place | Journey;

class Walk {
  private packet: Packet;
  private readonly path: string[] = [];
  private readonly state: ConnectionState;

  constructor(
    private readonly network: Network,
    private readonly departure: Departure,
  ) {
    this.packet = departure.packet;
    this.state = departure.state ?? "new";
  }

  run(): Journey {
    const { machine, namespace } = this.departure;
    let step: Step = { machine, namespace, iif: undefined };
    for (let hops = 0; hops < MOST_HOPS; hops += 1) {
      if ("end" in step) return step;
      step = this.next(step);
    }
    return "end" in step ? step : this.lost("it goes in a circle");
  }

  private next(place: Place): Step {
    return place.namespace === place.machine.root ? this.throughHost(place) : this.throughContainer(place);
  }

  private throughContainer({ machine, namespace, iif }: Place): Step {
    const { source, destination } = this.packet;
    const route = lookUpRoute(namespace, destination, source);
    if (iif !== undefined) {
      if (route?.kind === "local") return this.delivered(namespace);
      return this.lost(`the container on ${machine.name} does not have ${formatAddress(destination)}`);
    }
    if (route?.kind === "local") return this.delivered(namespace);
    const link = linkOf(namespace, route?.linkIndex);
    if (route === undefined || route.kind !== "unicast" || link === undefined) return this.lost(noRoute(route));
    if (!hasAddress(namespace, source)) return this.lost(`the container does not have ${formatAddress(source)}`);
    this.note(`container on ${machine.name}`, route, link);
    return this.acrossVeth({ machine, namespace, iif }, link, route.gateway ?? destination);
  }

  private throughHost({ machine, namespace, iif }: Place): Step {
    const ask = this.enter(machine, this.state);
    const early = iif && ask("prerouting", iif, undefined);
    if (early) return early;
    const { source, destination } = this.packet;
    const route = lookUpRoute(namespace, destination, source);
    if (route?.kind === "local") return (iif && ask("input", iif, undefined)) ?? this.delivered(machine.root);
    const oif = linkOf(namespace, route?.linkIndex);
    if (route === undefined || route.kind !== "unicast" || oif === undefined)
      return this.lost(`${machine.name}: ${noRoute(route)}`);
    const refusal = iif && whyNotForwarded(namespace, iif, this.packet);
    if (refusal !== undefined) return this.lost(`${machine.name}: ${refusal}`);
    this.note(machine.name, route, oif);
    const dropped = ask(iif === undefined ? "output" : "forward", iif, oif) ?? ask("postrouting", iif, oif);
    return dropped ?? this.transmit(machine, oif, route);
  }

  private transmit(machine: Machine, oif: Readonly<ModelLink>, route: Readonly<ModelRoute>): Step {
    const nextHop = route.gateway ?? this.packet.destination;
    if (!oif.isUp) return this.lost(`${machine.name}: "${oif.name}" is down`);
    switch (oif.kind) {
      case "veth":
        return this.acrossVeth({ machine, namespace: machine.root, iif: undefined }, oif, nextHop);
      case "vxlan":
      case "ipip":
        return this.throughTunnel(machine, oif, nextHop);
      case undefined:
        return this.overTheWire(machine, nextHop);
      default:
        return this.lost(`${machine.name}: nobody is behind "${oif.name}"`);
    }
  }

  private acrossVeth(from: Place, link: Readonly<ModelLink>, nextHop: Address): Step {
    const { peer } = link;
    const other = peer?.namespace.links.get(peer.index);
    if (peer === undefined || other === undefined) return this.lost(`"${link.name}" has no other end`);
    if (!link.isUp || !other.isUp) return this.lost(`"${link.name}" or its other end "${other.name}" is down`);
    const reason = resolvesGateway(from.namespace, link, { namespace: peer.namespace, link: other }, nextHop);
    if (reason !== undefined) return this.lost(reason);
    return { machine: from.machine, namespace: peer.namespace, iif: other };
  }

  private throughTunnel(machine: Machine, oif: Readonly<ModelLink>, nextHop: Address): Step {
    const end = tunnelEnd(machine, oif, nextHop);
    if (typeof end === "string") return this.lost(`${machine.name}: ${end}`);
    const to = this.network.machines.find(({ root }) => hasAddress(root, end.outer.destination));
    const outer = `${formatAddress(end.outer.source)} → ${formatAddress(end.outer.destination)}`;
    if (to === undefined) return this.lost(`${machine.name}: no host has the address of the tunnelled packet ${outer}`);
    const iif = [...to.root.links.values()].find((link) => end.isReceiver(link, to));
    if (iif === undefined || !iif.isUp) return this.lost(`${to.name} has no device for the tunnelled packet ${outer}`);
    this.path.push(`tunnel ${outer}`);
    return this.withOuter(machine, to, end.outer) ?? { machine: to, namespace: to.root, iif };
  }

  /** The tunnelled packet itself passes the rules of both hosts. */
  private withOuter(from: Machine, to: Machine, outer: Packet): Journey | undefined {
    const inner = this.packet;
    this.packet = outer;
    const wire = (machine: Machine, towards: Address) => {
      const { linkIndex } = lookUpRoute(machine.root, towards) ?? {};
      return linkOf(machine.root, linkIndex);
    };
    const [oif, iif] = [wire(from, outer.destination), wire(to, outer.source)];
    const [leave, arrive] = [this.enter(from, "new"), this.enter(to, "new")];
    const dropped =
      leave("output", undefined, oif) ??
      leave("postrouting", undefined, oif) ??
      arrive("prerouting", iif, undefined) ??
      arrive("input", iif, undefined);
    this.packet = inner;
    return dropped;
  }

  private overTheWire(machine: Machine, nextHop: Address): Step {
    const { machines } = this.network;
    const near = machines.find(({ root, segment }) => segment === machine.segment && hasAddress(root, nextHop));
    // What is sent to a router gets to the host that has the address, if one has.
    const to = near ?? machines.find(({ root }) => hasAddress(root, this.packet.destination));
    const isFar = to !== undefined && to.segment !== machine.segment;
    if (to === undefined || (isFar && isSameAddress(nextHop, this.packet.destination)))
      return this.lost(`no host in the segment of ${machine.name} has ${formatAddress(nextHop)}`);
    const iif = wireOf(to.root);
    if (iif === undefined || !iif.isUp) return this.lost(`${to.name} is not connected`);
    return { machine: to, namespace: to.root, iif };
  }

  /** Returns a function that asks one hook after another, and returns the end of the journey if one of them drops it. */
  private enter(machine: Machine, state: ConnectionState) {
    const ask = this.network.enter(machine, state);
    type Link = Readonly<ModelLink> | undefined;
    return (hook: Hook, iif: Link, oif: Link): Journey | undefined => {
      const { verdict, by, packet = this.packet } = ask({ hook, iif, oif, packet: this.packet });
      const isSame =
        isSameAddress(packet.source, this.packet.source) && isSameAddress(packet.destination, this.packet.destination);
      if (!isSame) this.path.push(`${machine.name} translates it to ${titleOf(packet)}`);
      this.packet = packet;
      if (verdict === "accept") return undefined;
      this.path.push(`${machine.name} drops it at ${hook}${by === undefined ? "" : ` (${by})`}`);
      return { end: "dropped", packet: this.packet, path: this.path };
    };
  }

  private note(where: string, { destination, gateway }: Readonly<ModelRoute>, link: Readonly<ModelLink>): void {
    const via = gateway === undefined ? "" : ` via ${formatAddress(gateway)}`;
    this.path.push(`${where}: ${formatAddress(destination.network)}/${destination.length}${via} dev ${link.name}`);
  }

  private delivered(namespace: NetworkNamespace): Journey {
    return { end: "delivered", namespace, packet: this.packet, path: this.path };
  }

  private lost(reason: string): Journey {
    this.path.push(reason);
    return { end: "lost", packet: this.packet, path: this.path };
  }
}

function noRoute(route: Readonly<ModelRoute> | undefined): string {
  return route === undefined ? "no route" : `the route is of kind ${route.kind}`;
}

/** The link to the other hosts. */
function wireOf(root: NetworkNamespace): Readonly<ModelLink> | undefined {
  return [...root.links.values()].find(({ kind, name }) => kind === undefined && name !== "lo");
}
