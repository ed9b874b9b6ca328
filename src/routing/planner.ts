/**
 * The plan of one node, kept up to date with the changes of facts. Pure: reads and writes nothing else.
 *
 *   block ────────────▶ its entries, those of the nodes that have addresses in it, and the blocks that it overlaps
 *   node ─────────────▶ its entries, the blocks in which it has addresses, and the nodes that claim the same
 *   own endpoint ─────▶ its entries
 *   remote endpoint ──▶ its entries, if it has addresses that IPAM does not know
 *   own address, pool ▶ everything
 *
 * A change costs as much as what follows from it (`consequences.ts`); facts equal to the known ones cost nothing.
 */
import { type Address, isSameAddress } from "../ip/address.ts";
import { type Prefix, prefixAround, prefixContains, prefixesOverlap, singlePrefix } from "../ip/prefix.ts";
import { BlockTable } from "./block-table.ts";
import {
  type Consequences,
  entriesOfBlock,
  entriesOfEndpoint,
  entriesOfNode,
  entriesOfRemoteEndpoint,
  noConsequences,
  type Surroundings,
} from "./consequences.ts";
import { addressesOf, type CountedNode, countedNode, NodeTable } from "./counted-nodes.ts";
import type { AnnouncedEndpoint, RemoteEndpoint, RoutedBlock, RoutedNode, RoutedPool } from "./facts.ts";
import type {
  PlanChange,
  PlannedPeer,
  PlannedRoute,
  PlannedTunnel,
  RoutePlan,
  TunnelName,
  VxlanNumbers,
} from "./plan.ts";
import { PlanEntries } from "./plan-entries.ts";
import { PoolTable } from "./pool-table.ts";
import { type PlannedTunnels, planTunnels } from "./tunnels.ts";
import { describeRefused, describeUnreachable, type UnreachableNode } from "./unreachable-nodes.ts";
import { describeUnread, UnreadRecords } from "./unread-records.ts";

export interface RoutingSettings {
  /** Otherwise nothing is planned: others carry the packets of pods between nodes. */
  readonly isEnabled: boolean;
  /** Otherwise the network between nodes is flat: nodes of one subnet are the gateways of each other. */
  readonly isBgpEnabled: boolean;
  /** Absent: the usual ones. */
  readonly vxlan?: VxlanNumbers;
}

const USUAL_VXLAN: VxlanNumbers = { port: 4789, id: 4096 };

/** A `RecordChange` of a replica is one. */
export type FactChange<Value> =
  | { readonly kind: "put"; readonly key: string; readonly value: Value }
  | { readonly kind: "delete"; readonly key: string }
  /** What was known of it stays. */
  | { readonly kind: "unreadable"; readonly key: string };

export interface FactChanges {
  readonly settings?: RoutingSettings;
  /** The records that the settings follow from. */
  readonly settingRecords?: readonly FactChange<unknown>[];
  readonly nodes?: readonly FactChange<RoutedNode>[];
  readonly pools?: readonly FactChange<RoutedPool>[];
  readonly blocks?: readonly FactChange<RoutedBlock>[];
  /** Of the planned node. */
  readonly endpoints?: readonly FactChange<AnnouncedEndpoint>[];
  /** Of other nodes. */
  readonly remoteEndpoints?: readonly FactChange<RemoteEndpoint>[];
}

/** The facts whose consequences must be computed again. */
interface Due {
  all: boolean;
  /** What counts of these nodes may differ. */
  readonly claims: Set<string>;
  readonly nodes: Set<string>;
  readonly blocks: Set<string>;
  readonly endpoints: Set<string>;
  allEndpoints: boolean;
  readonly remoteEndpoints: Set<string>;
}

export class RoutePlanner {
  private readonly nodeNames = new Map<string, string>();
  private readonly nodes = new NodeTable();
  private readonly counted = new Map<string, CountedNode>();
  private readonly pools = new PoolTable();
  private readonly blocks = new BlockTable({
    pools: () => this.pools.values(),
    occupied: (prefix) => this.occupied(prefix),
    assignedTo: (block) => this.assignedTo(block),
  });
  private readonly endpoints = new Map<string, AnnouncedEndpoint>();
  /** Those of `endpoints` with addresses that no block or pod CIDR of this node contains. Few. */
  private readonly withSingles = new Set<string>();
  /** Few. */
  private readonly remoteEndpoints = new Map<string, RemoteEndpoint>();
  private ownTunnels: PlannedTunnels = { tunnels: new Map(), problems: [] };
  private readonly routes = new PlanEntries<PlannedRoute>();
  private readonly peers = new PlanEntries<PlannedPeer>();
  private readonly senders = new PlanEntries<Address>();
  private readonly announced = new PlanEntries<Prefix>();
  private readonly outsidePools = new PlanEntries<Prefix>();
  private readonly unreachable = new PlanEntries<UnreachableNode>();
  private readonly refused = new PlanEntries<string>();
  private readonly unread = { pools: new UnreadRecords(), others: new UnreadRecords() };
  private problems: readonly string[] = [];

  /** `node`: the name of the planned node. */
  constructor(
    private readonly node: string,
    private settings: RoutingSettings,
  ) {}

  /** As the settings said last. */
  get isEnabled(): boolean {
    return this.settings.isEnabled;
  }

  /** Those of `problems` that are about the planned node, not about others. */
  get ownProblems(): readonly string[] {
    return this.ownTunnels.problems;
  }

  /** Its maps change with every update; `problems` is the same list until it differs. */
  get plan(): RoutePlan {
    return {
      tunnels: this.ownTunnels.tunnels,
      peers: this.peers.entries,
      routes: this.routes.entries,
      senders: this.senders.entries,
      announced: this.announced.entries,
      outsidePools: this.outsidePools.entries,
      problems: this.problems,
      isPartial: this.settings.isEnabled && this.unread.pools.keys.size + this.unread.others.keys.size > 0,
    };
  }

  update(facts: FactChanges): PlanChange {
    const { settings = this.settings, nodes = [], pools = [], blocks = [] } = facts;
    const { endpoints = [], remoteEndpoints = [] } = facts;
    const due: Due = {
      ...{ all: false, allEndpoints: false },
      ...{ claims: new Set(), nodes: new Set(), blocks: new Set(), endpoints: new Set(), remoteEndpoints: new Set() },
    };
    if (!Bun.deepEquals(settings, this.settings)) due.all = true;
    this.settings = settings;
    const isReadAgain = this.noteUnread(facts, due);
    forEachValue(pools, (key, pool) => {
      if (this.pools.set(key, pool)) due.all = true;
    });
    forEachValue(nodes, (key, node) => this.setNode(key, node, due));
    forEachValue(blocks, (key, block) => this.setBlock(key, block, due));
    forEachValue(endpoints, (key, endpoint) => {
      if (replace(this.endpoints, key, endpoint)) due.endpoints.add(key);
    });
    forEachValue(remoteEndpoints, (key, endpoint) => {
      const former = this.remoteEndpoints.get(key);
      if (!replace(this.remoteEndpoints, key, endpoint)) return;
      due.remoteEndpoints.add(key);
      // Those with the same addresses.
      for (const address of [...(former?.addresses ?? []), ...(endpoint?.addresses ?? [])])
        this.noteSinglesIn(singlePrefix(address), due);
    });
    const change = this.deriveAll(due);
    if (isReadAgain) this.describeProblems();
    return change;
  }

  /** Returns whether other records are unread than before. */
  private noteUnread({ nodes, pools, blocks, settingRecords }: FactChanges, due: Due): boolean {
    const { unread } = this;
    const hadUnreadPools = unread.pools.keys.size > 0;
    const areDifferent = [
      unread.pools.note("pools", pools),
      unread.others.note("nodes", nodes),
      unread.others.note("blocks", blocks),
      unread.others.note("settings", settingRecords),
    ];
    if (unread.pools.keys.size > 0 !== hadUnreadPools) due.all = true;
    return areDifferent.includes(true);
  }

  private setNode(key: string, node: RoutedNode | undefined, due: Due): void {
    const name = node?.name ?? this.nodeNames.get(key);
    if (name === undefined) return;
    const former = this.nodes.get(name);
    const isSame = Bun.deepEquals(routedParts(former), routedParts(node));
    const rivals = this.nodes.set(name, node);
    if (node === undefined) this.nodeNames.delete(key);
    else this.nodeNames.set(key, name);
    if (isSame) return;
    for (const each of [name, ...rivals]) due.claims.add(each);
    if (name === this.node) due.allEndpoints = true;
    if (name === this.node && !Bun.deepEquals(endsOf(former), endsOf(node))) due.all = true;
    if (name === this.node && isHostLocal(former) !== isHostLocal(node)) due.all = true;
    const addresses = [former, node].flatMap((each) => (each === undefined ? [] : addressesOf(each)));
    const podCidrs = [...(former?.podCidrs ?? []), ...(node?.podCidrs ?? [])];
    const occupied = [...addresses.map(singlePrefix), ...podCidrs].flatMap((each) => this.blocks.keysOverlapping(each));
    for (const block of occupied) this.noteBlock(block, due);
    for (const cidr of podCidrs) this.noteTunnelsIn(cidr, due);
    for (const each of [...addresses.map(singlePrefix), ...podCidrs]) this.noteSinglesIn(each, due);
  }

  /** The block may count from now on, or no longer. */
  private noteBlock(key: string, due: Due): void {
    const block = this.blocks.get(key);
    if (block === undefined) return;
    due.blocks.add(key);
    this.noteTunnelsIn(block.prefix, due);
    this.noteSinglesIn(block.prefix, due);
    const nodes = [block.node ?? [], ...block.borrowed.values().map(({ node }) => node)].flat();
    for (const node of nodes) due.nodes.add(node);
    if (nodes.includes(this.node)) due.allEndpoints = true;
  }

  private noteTunnelsIn(prefix: Prefix, due: Due): void {
    for (const name of this.nodes.withTunnelsIn(prefix)) {
      due.claims.add(name);
      due.nodes.add(name);
    }
  }

  private setBlock(key: string, block: RoutedBlock | undefined, due: Due): void {
    const former = this.blocks.get(key);
    const change = this.blocks.set(key, block);
    for (const { prefix } of [former ?? [], block ?? []].flat()) this.noteSinglesIn(prefix, due);
    if (change === undefined) return;
    due.blocks.add(key);
    for (const node of change.nodes) due.nodes.add(node);
    if (change.nodes.has(this.node)) due.allEndpoints = true;
    for (const { prefix } of [former ?? [], block ?? []].flat()) this.noteTunnelsIn(prefix, due);
    for (const other of change.others) this.noteBlock(other, due);
  }

  /** Other single addresses of the network may count from now on. */
  private noteSinglesIn(prefix: Prefix, due: Due): void {
    const isWithin = (address: Address) => prefixContains(prefix, address);
    for (const key of this.withSingles) {
      const { addresses = [], floating = [] } = this.endpoints.get(key) ?? {};
      if (addresses.some(isWithin) || floating.some(isWithin)) due.endpoints.add(key);
    }
    for (const [key, { addresses }] of this.remoteEndpoints) {
      if (addresses.some(isWithin)) due.remoteEndpoints.add(key);
    }
  }

  private deriveAll(due: Due): PlanChange {
    const formerTunnels = this.ownTunnels;
    if (due.all) {
      this.ownTunnels = this.settings.isEnabled
        ? planTunnels(this.nodes.get(this.node), this.pools.all(), this.settings.vxlan ?? USUAL_VXLAN)
        : { tunnels: new Map(), problems: [] };
    }
    this.judgeClaims(due);
    const around = this.surroundings();
    for (const name of due.all ? new Set(this.counted.keys()).union(due.nodes) : due.nodes) {
      this.replaceEntries(`node ${name}`, this.counted.get(name), (node) => entriesOfNode(node, around));
    }
    for (const key of due.all ? new Set(this.blocks.keys()).union(due.blocks) : due.blocks) {
      this.replaceEntries(`block ${key}`, this.blocks.get(key), (block) => entriesOfBlock(block, around));
    }
    const areAllDue = due.all || due.allEndpoints;
    for (const key of areAllDue ? new Set(this.endpoints.keys()).union(due.endpoints) : due.endpoints) {
      this.withSingles.delete(key);
      this.replaceEntries(`endpoint ${key}`, this.endpoints.get(key), (endpoint) => {
        const made = entriesOfEndpoint(endpoint, around);
        if (made.announced.length + made.refused.length > 0) this.withSingles.add(key);
        return made;
      });
    }
    for (const [key, { node }] of this.remoteEndpoints) {
      if (due.all || due.nodes.has(node)) due.remoteEndpoints.add(key);
    }
    for (const key of due.remoteEndpoints) {
      this.replaceEntries(`remote endpoint ${key}`, this.remoteEndpoints.get(key), (endpoint) =>
        entriesOfRemoteEndpoint(endpoint, around),
      );
    }
    const changed = this.unreachable.takeChanged().size + this.refused.takeChanged().size;
    if (changed > 0 || formerTunnels !== this.ownTunnels) this.describeProblems();
    return {
      tunnels: differentTunnels(formerTunnels.tunnels, this.ownTunnels.tunnels),
      peers: this.peers.takeChanged(),
      routes: this.routes.takeChanged(),
      senders: this.senders.takeChanged(),
      announced: this.announced.takeChanged(),
      outsidePools: this.outsidePools.takeChanged(),
    };
  }

  private judgeClaims(due: Due): void {
    for (const name of due.all ? new Set(this.nodes.names()).union(due.claims) : due.claims) {
      const node = this.nodes.get(name);
      const former = this.counted.get(name);
      // Nobody else knows this node better.
      const counted =
        node !== undefined && name !== this.node
          ? countedNode(node, this.nodes, this.blocks)
          : node && { node, refused: [] };
      if (counted === undefined) this.counted.delete(name);
      else this.counted.set(name, counted);
      const isSame = Bun.deepEquals(routedParts(former?.node), routedParts(counted?.node));
      if (!isSame || !Bun.deepEquals(former?.refused, counted?.refused)) due.nodes.add(name);
      if (Bun.deepEquals(endsOf(former?.node), endsOf(counted?.node))) continue;
      for (const block of this.blocks.keysOf(name)) due.blocks.add(block);
    }
  }

  /** By the subnets of this node, or addresses and pod CIDRs of all nodes. */
  private occupied(prefix: Prefix): string | undefined {
    const own = this.nodes.get(this.node)?.addresses[prefix.network.family];
    if (own !== undefined && prefixesOverlap(prefixAround(own.address, own.length), prefix))
      return "overlaps the subnet of this node";
    return this.occupiedByNode(prefix);
  }

  private occupiedByNode(prefix: Prefix): string | undefined {
    const name = this.nodes.withAddressIn(prefix);
    if (name !== undefined) return `contains an address of node "${name}"`;
    const assigned = this.nodes.withPodCidrIn(prefix);
    return assigned && `overlaps a pod CIDR of node "${assigned}"`;
  }

  /** While nodes change from host-local addresses to those of pools, new blocks may be inside pod CIDRs of others. */
  private assignedTo({ prefix, node }: Pick<RoutedBlock, "prefix" | "node">): string | undefined {
    if (!isHostLocal(this.nodes.get(this.node))) return undefined;
    const names = this.nodes.withPodCidrAround(prefix);
    return node !== undefined && names.includes(node) ? undefined : names[0];
  }

  private replaceEntries<Fact>(
    source: string,
    fact: Fact | undefined,
    consequencesOf: (fact: Fact) => Consequences,
  ): void {
    const { routes, peers, senders, announced, outsidePools, unreachable, refused } =
      fact === undefined || !this.settings.isEnabled ? noConsequences() : consequencesOf(fact);
    this.routes.replace(source, routes);
    this.peers.replace(source, peers);
    this.senders.replace(source, senders);
    this.announced.replace(source, announced);
    this.outsidePools.replace(source, outsidePools);
    this.unreachable.replace(source, unreachable);
    this.refused.replace(source, refused);
  }

  private surroundings(): Surroundings {
    const { node, counted: nodes, pools, blocks } = this;
    const { isBgpEnabled } = this.settings;
    const hasUnreadPools = this.unread.pools.keys.size > 0;
    const own = this.nodes.get(node);
    const occupied = (prefix: Prefix) => this.occupied(prefix);
    const occupiedByNode = (prefix: Prefix) => this.occupiedByNode(prefix);
    const alsoOn = (address: Address, name: string) => this.remoteNodesWith(address).filter((each) => each !== name);
    const { tunnels } = this.ownTunnels;
    const claims = { occupied, occupiedByNode, alsoOn };
    return { node, nodes, pools, blocks, isBgpEnabled, hasUnreadPools, own, tunnels, ...claims };
  }

  private remoteNodesWith(address: Address): readonly string[] {
    const holders = [...this.remoteEndpoints.values()].filter(({ addresses }) =>
      addresses.some((each) => isSameAddress(each, address)),
    );
    return [...new Set(holders.map(({ node }) => node))].toSorted();
  }

  private describeProblems(): void {
    const unread = describeUnread(this.unread.pools.keys.union(this.unread.others.keys));
    const problems = [
      ...this.ownTunnels.problems,
      ...describeUnreachable(this.unreachable.entries.values()),
      ...describeRefused(this.refused.entries.values()),
      ...(unread === undefined ? [] : [unread]),
    ];
    if (!Bun.deepEquals(problems, this.problems)) this.problems = problems;
  }
}

/** Returns whether it is another than before. */
function replace<Value>(values: Map<string, Value>, key: string, value: Value | undefined): boolean {
  if (Bun.deepEquals(values.get(key), value)) return false;
  if (value === undefined) values.delete(key);
  else values.set(key, value);
  return true;
}

function forEachValue<Value>(
  changes: readonly FactChange<Value>[],
  apply: (key: string, value: Value | undefined) => void,
): void {
  for (const change of changes) {
    if (change.kind !== "unreadable") apply(change.key, change.kind === "put" ? change.value : undefined);
  }
}

/** What routes depend on; not the labels. */
function routedParts(node: RoutedNode | undefined) {
  return node && { ...endsOf(node), podCidrs: node.podCidrs, refusedPodCidrs: node.refusedPodCidrs };
}

function isHostLocal(node: RoutedNode | undefined): boolean {
  return node !== undefined && node.podCidrs.length > 0;
}

function endsOf(node: RoutedNode | undefined) {
  return node && { addresses: node.addresses, reported: node.reported, vxlan: node.vxlan, ipip: node.ipip };
}

function differentTunnels(
  former: ReadonlyMap<TunnelName, PlannedTunnel>,
  current: ReadonlyMap<TunnelName, PlannedTunnel>,
): ReadonlySet<TunnelName> {
  const names = new Set([...former.keys(), ...current.keys()]);
  return new Set([...names].filter((name) => !Bun.deepEquals(former.get(name), current.get(name))));
}
