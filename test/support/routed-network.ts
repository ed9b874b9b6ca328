/**
 * The network of a random cluster: every node routes by the plan that was made for it, by what BIRD would add, and by the
 * routes of its own pods. Packets are followed by longest prefix from node to node.
 */
import { type Address, formatAddress, isSameAddress } from "../../src/ip/address.ts";
import { formatPrefix, type Prefix, prefixContains, prefixCovers } from "../../src/ip/prefix.ts";
import type { BgpPlan } from "../../src/routing/bgp/plan.ts";
import { planBgp } from "../../src/routing/bgp/sessions.ts";
import type { RoutedNode } from "../../src/routing/facts.ts";
import type { NextHop, RoutePlan } from "../../src/routing/plan.ts";
import { RoutePlanner } from "../../src/routing/planner.ts";
import { address, prefix } from "./ip.ts";
import { factsOf, type RoutedCluster } from "./routed-cluster.ts";

type Hop = NextHop | { readonly kind: "local" } | { readonly kind: "bgp"; readonly node: string };

interface KernelRoute {
  readonly destination: Prefix;
  readonly hop: Hop;
}

/** `leave`: what no route leads to goes to the router between the nodes, which has learned what nodes announce. */
type Otherwise = "stay" | "leave";

/** Where a packet ended, the nodes on its way, and how it was sent at first. */
export interface Journey {
  readonly end: "delivered" | "blackhole" | "no route" | "lost" | "circle";
  readonly nodes: readonly string[];
  readonly first: Hop["kind"] | undefined;
}

export class RoutedNetwork {
  private readonly plans: ReadonlyMap<string, RoutePlan>;
  private readonly tables: ReadonlyMap<string, readonly KernelRoute[]>;

  constructor(private readonly cluster: RoutedCluster) {
    const { nodes, isBgpEnabled } = cluster;
    this.plans = new Map(
      nodes.map(({ name }) => {
        const planner = new RoutePlanner(name, { isEnabled: true, isBgpEnabled });
        planner.update(factsOf(cluster, name));
        return [name, planner.plan];
      }),
    );
    this.tables = new Map(nodes.map((node) => [node.name, this.tableOf(node)]));
  }

  /** Destinations for which the table of the node has more than one route. */
  ambiguous(node: string): readonly string[] {
    const destinations = (this.tables.get(node) ?? []).map(({ destination }) => formatPrefix(destination));
    return destinations.filter((text, index) => destinations.indexOf(text) !== index);
  }

  follow(from: string, target: string, otherwise: Otherwise = "stay"): Journey {
    const to = address(target);
    const nodes: string[] = [];
    let first: Hop["kind"] | undefined;
    for (let at: string | undefined = from; at !== undefined; ) {
      const node: string = at;
      if (nodes.includes(node)) return { end: "circle", nodes: [...nodes, node], first };
      nodes.push(node);
      const hop =
        longestMatch(this.tables.get(node) ?? [], to) ?? (otherwise === "leave" ? this.hopAtRouter(to) : undefined);
      first ??= hop?.kind;
      if (hop === undefined) return { end: "no route", nodes, first };
      if (hop.kind === "local") return { end: "delivered", nodes, first };
      if (hop.kind === "blackhole") return { end: "blackhole", nodes, first };
      at = this.pass(node, hop);
    }
    return { end: "lost", nodes, first };
  }

  private tableOf({ name, addresses }: RoutedNode): readonly KernelRoute[] {
    const { targets, nodes, pools, isBgpEnabled } = this.cluster;
    const own = targets.filter(({ node }) => node === name).map(({ address: text }) => address(text));
    const local = own.map((at): KernelRoute => ({ destination: single(at), hop: { kind: "local" } }));
    const planned = [...(this.plans.get(name)?.routes.values() ?? [])];
    // BIRD does not put routes of pools with a tunnel into the kernel.
    const tunnelled = pools.filter(({ mode }) => mode.kind !== "unencapsulated");
    // It accepts of other nodes only what their own plans send.
    const { accepted, withheld } = this.acceptedBy(name);
    const learned = nodes.flatMap((other) => {
      if (other.name === name || !isBgpEnabled) return [];
      return [...(this.plans.get(other.name)?.announced.values() ?? [])]
        .filter(({ network: { family } }) => addresses[family] !== undefined && other.addresses[family] !== undefined)
        .filter((destination) => accepted.some((each) => prefixCovers(each, destination)))
        .filter((destination) => !withheld.some((each) => prefixCovers(each, destination)))
        .filter((destination) => !tunnelled.some((pool) => prefixCovers(pool.prefix, destination)))
        .map((destination): KernelRoute => ({ destination, hop: { kind: "bgp", node: other.name } }));
    });
    return [...local, ...planned, ...learned];
  }

  private acceptedBy(name: string): Pick<BgpPlan, "accepted" | "withheld"> {
    const { nodes, pools } = this.cluster;
    const { announced, outsidePools } = this.plans.get(name) ?? { announced: new Map(), outsidePools: new Map() };
    const facts = { nodes, pools, announced: announced.values(), outsidePools: outsidePools.values() };
    return planBgp({ ...facts, node: name, configurations: [], peers: [], filters: [], passwords: new Map() });
  }

  private hopAtRouter(to: Address): Hop | undefined {
    const learned = Array.from(this.plans, ([node, { announced }]) =>
      Array.from(announced.values(), (destination): KernelRoute => ({ destination, hop: { kind: "bgp", node } })),
    );
    return longestMatch(learned.flat(), to);
  }

  /** The node that receives the packet; `undefined` if it is lost on the way. */
  private pass(from: string, hop: Exclude<Hop, { kind: "local" | "blackhole" }>): string | undefined {
    if (hop.kind === "bgp") return hop.node;
    if (hop.kind === "gateway") {
      const to = this.nodeAt(hop.gateway);
      return to !== undefined && this.cluster.subnets.get(to) === this.cluster.subnets.get(from) ? to : undefined;
    }
    const { tunnel, gateway } = hop;
    const plan = this.plans.get(from);
    const device = plan?.tunnels.get(tunnel);
    const peer = [...(plan?.peers.values() ?? [])].find(
      (each) => each.tunnel === tunnel && isSameAddress(each.address, gateway),
    );
    const to = this.nodeAt(tunnel === "ipip4" ? gateway : peer?.remote);
    if (device === undefined || to === undefined) return undefined;
    const receiver = this.plans.get(to);
    const other = receiver?.tunnels.get(tunnel);
    // The frame is addressed to the device of the receiver, which accepts packets of nodes only.
    const isForIt = tunnel === "ipip4" || other?.mac === peer?.mac;
    return other !== undefined && isForIt && receiver?.senders.has(formatAddress(device.local)) ? to : undefined;
  }

  private nodeAt(at: Address | undefined): string | undefined {
    const has = ({ addresses }: RoutedNode) =>
      at !== undefined && addresses[at.family] !== undefined && isSameAddress(addresses[at.family]?.address ?? at, at);
    return this.cluster.nodes.find(has)?.name;
  }
}

function longestMatch(routes: readonly KernelRoute[], to: Address): Hop | undefined {
  let best: KernelRoute | undefined;
  for (const route of routes) {
    if (prefixContains(route.destination, to) && route.destination.length > (best?.destination.length ?? -1))
      best = route;
  }
  return best?.hop;
}

function single(at: Address): Prefix {
  return prefix(`${formatAddress(at)}/${at.family === 4 ? 32 : 128}`);
}
