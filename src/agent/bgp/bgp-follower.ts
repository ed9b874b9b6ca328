/**
 * Follows everything that BGP on this node depends on, and tells the keeper of BIRD what is wanted.
 *
 *   replica: nodes, pools, BGP resources, settings ─┐
 *   planner of routes: what this node announces ────┼─▶ plan of BGP ─▶ keeper
 *   passwords, Services with Local endpoints ───────┘
 *
 * Nothing is wanted before all of them are known: half of them would reset sessions and withdraw routes. Services are not
 * waited for: while they are unknown, their single addresses stay announced as they were.
 */
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import type { Prefix } from "../../ip/prefix.ts";
import { bgpSettings } from "../../model/bgp-configuration.ts";
import type { IPPool } from "../../model/ip-pool.ts";
import type { Node } from "../../model/node.ts";
import { type NodeAgentConfiguration, nodeAgentSettings } from "../../model/node-agent-configuration.ts";
import type { KnownRouting } from "../../model/routing-state.ts";
import { serviceNetworks } from "../../routing/bgp/announcements.ts";
import type { BgpValues } from "../../routing/bgp/inputs.ts";
import { carriedFamilies } from "../../routing/bgp/mesh-sessions.ts";
import type { BgpPlan } from "../../routing/bgp/plan.ts";
import { planBgp } from "../../routing/bgp/sessions.ts";
import { ownAddress } from "../../routing/bird/session.ts";
import type { RoutedNode, RoutedPool } from "../../routing/facts.ts";
import type { RoutePlan } from "../../routing/plan.ts";
import { routedNode } from "../../routing/routed-node.ts";
import { routedPool } from "../../routing/routed-pool.ts";
import type { BirdKeeper, WantedBgp } from "./bird-keeper.ts";
import type { Passwords } from "./passwords.ts";
import type { PeerGuard } from "./peer-guard.ts";
import type { ServiceFollower } from "./service-follower.ts";

interface FollowedValues extends BgpValues {
  readonly nodes: Node;
  readonly pools: IPPool;
  readonly configurations: NodeAgentConfiguration;
}

type PlannedNetworks = Pick<RoutePlan, "announced" | "outsidePools">;

interface BgpNetworks {
  readonly announced: readonly Prefix[];
  readonly outsidePools: readonly Prefix[];
}

export interface BgpUpdate {
  readonly changes: { readonly [Kind in keyof FollowedValues]: readonly RecordChange<FollowedValues[Kind]>[] };
}

export interface BgpFollowerMeans {
  readonly node: string;
  readonly keeper: Pick<BirdKeeper, "update" | "run" | "known">;
  readonly passwords: Passwords;
  readonly guard: Pick<PeerGuard, "guard" | "run">;
  readonly services: Pick<ServiceFollower, "services" | "problem" | "follow" | "run">;
  /** What the configuration of BIRD on this host announces. Read once: the agent before this one may have written it. */
  readonly announcedBefore: () => readonly Prefix[];
  /** Without it another program may hold the sessions of this host. */
  readonly isBirdInstalled: () => boolean;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

/** While a password cannot be read it is tried again this often. */
const RETRY_MILLISECONDS = 5_000;
/** All passwords are read again after this many of these times. */
const RETRIES_OF_REFRESH = 6;

export class BgpFollower {
  readonly #means: BgpFollowerMeans;
  readonly #nodes = new Map<string, RoutedNode>();
  readonly #pools = new Map<string, RoutedPool>();
  readonly #settings = new Map<string, NodeAgentConfiguration>();
  readonly #configurations = new Map<string, BgpValues["bgpConfigurations"]>();
  readonly #peers = new Map<string, BgpValues["bgpPeers"]>();
  readonly #filters = new Map<string, BgpValues["bgpFilters"]>();
  #networks: BgpNetworks | undefined;
  #hasResources = false;
  /** The last plan with all its passwords. */
  #planned: BgpPlan | undefined;
  /** By the last plan. */
  #announced: readonly Prefix[] | undefined;

  constructor(means: BgpFollowerMeans) {
    this.#means = means;
  }

  /** Whether it has been told what to announce, if only that there is nothing. */
  get isAnnouncing(): boolean {
    return this.#networks !== undefined;
  }

  /** What has become of what is wanted, for people. `undefined` if that is not known now. Never rejects. */
  async known(): Promise<KnownRouting | undefined> {
    // A BIRD that does not reply in time has ended, or is busy.
    return this.#means.keeper.known().catch(() => undefined);
  }

  /** What the plan of routes says from now on. Returns at once. */
  announce({ announced, outsidePools }: PlannedNetworks): void {
    this.#networks = { announced: [...announced.values()], outsidePools: [...outsidePools.values()] };
    this.#tell();
  }

  /** Until the updates have ended and the signal is aborted. BIRD goes on. */
  async run(updates: AsyncIterable<BgpUpdate>, signal: AbortSignal): Promise<void> {
    const { keeper, guard, services } = this.#means;
    const kept = [keeper.run(signal), guard.run(signal), services.run(signal, () => this.#tell())];
    await Promise.all([this.#follow(updates), this.#followPasswords(signal), ...kept]);
  }

  async #follow(updates: AsyncIterable<BgpUpdate>): Promise<void> {
    for await (const { changes } of updates) {
      const changed = [
        keep(this.#nodes, changes.nodes, routedNode),
        keep(this.#pools, changes.pools, routedPool),
        keep(this.#settings, changes.configurations, itself),
        keep(this.#configurations, changes.bgpConfigurations, itself),
        keep(this.#peers, changes.bgpPeers, itself),
        keep(this.#filters, changes.bgpFilters, itself),
      ];
      if (this.#hasResources && !changed.includes(true)) continue;
      await this.#means.passwords.require([
        ...[...this.#peers.values()].flatMap(({ spec }) => spec.password ?? []),
        ...[...this.#configurations.values()].flatMap(({ spec }) => spec.nodeMeshPassword ?? []),
      ]);
      this.#hasResources = true;
      this.#followServices();
      this.#tell();
    }
  }

  /** Nobody needs them without BGP. */
  #followServices(): void {
    const { node, services } = this.#means;
    const settings = bgpSettings(this.#disabled === undefined ? this.#configurations.values() : [], node);
    services.follow(serviceNetworks(settings));
  }

  get #disabled(): "routing" | "bgp" | undefined {
    const settings = nodeAgentSettings([...this.#settings.values()], this.#means.node);
    return (["routing", "bgp"] as const).find((field) => settings[field] === "Disabled");
  }

  async #followPasswords(signal: AbortSignal): Promise<void> {
    const { wait, passwords } = this.#means;
    for (let times = 1; !signal.aborted; times++) {
      await wait(RETRY_MILLISECONDS, signal);
      const isDue = passwords.unreadable !== undefined || times % RETRIES_OF_REFRESH === 0;
      if (!signal.aborted && isDue && (await passwords.refresh())) this.#tell();
    }
  }

  #tell(): void {
    const networks = this.#networks;
    if (!this.#hasResources || networks === undefined) return;
    // Computed when the keeper gets to it: once for many changes.
    this.#means.keeper.update(() => this.#wanted(networks));
  }

  #wanted({ announced, outsidePools }: BgpNetworks): WantedBgp {
    const { node, passwords, services } = this.#means;
    const disabled = this.#disabled;
    if (disabled !== undefined) {
      this.#means.guard.guard([]);
      this.#announced = [];
      const reason = `"${disabled}" is "Disabled" in the NodeAgentConfiguration`;
      return { reason, problems: [], ...(disabled === "routing" ? { routing: "Disabled" } : {}) };
    }
    const planned = planBgp({
      ...{ node, announced, outsidePools, passwords: passwords.all },
      nodes: this.#nodes.values(),
      pools: this.#pools.values(),
      configurations: this.#configurations.values(),
      peers: this.#peers.values(),
      filters: this.#filters.values(),
      localServices: services.services,
      announcedBefore: this.#announced ?? this.#means.announcedBefore(),
    });
    this.#announced = planned.announced;
    const { problem } = services;
    const plan = problem === undefined ? planned : { ...planned, problems: [...planned.problems, problem] };
    const { unreadable } = passwords;
    const wanted = unreadable === undefined ? plan : this.#withPlannedSessions(plan, unreadable);
    if (unreadable === undefined) this.#planned = plan;
    this.#guard(wanted);
    if (wanted.sessions.length > 0) return { plan: wanted };
    return { reason: this.#reasonWithoutSessions({ announced, outsidePools }), problems: plan.problems };
  }

  /** Before BIRD opens the sessions. */
  #guard(plan: BgpPlan): void {
    const { guard, isBirdInstalled } = this.#means;
    const sessions = isBirdInstalled() ? plan.sessions : [];
    guard.guard(sessions.map((each) => ({ address: each.address, port: each.port, source: ownAddress(each, plan) })));
  }

  /** Sessions stay as they are until all passwords can be read: BIRD must not end working ones for an outage of the API. */
  #withPlannedSessions(plan: BgpPlan, unreadable: string): BgpPlan {
    // BIRD may be running since before this agent. The keeper leaves it alone, and tries again.
    if (this.#planned === undefined) throw new Error(`the passwords are not known yet: ${unreadable}`);
    return { ...plan, sessions: this.#planned.sessions };
  }

  #reasonWithoutSessions(networks: BgpNetworks): string {
    const carried = { nodes: [...this.#nodes.values()], pools: [...this.#pools.values()], ...networks };
    const noMesh =
      carriedFamilies(carried).size === 0
        ? "no pool without a tunnel is exported by BGP"
        : "there is no other node with an address in the mesh";
    return `${noMesh}, and no BGPPeer selects this node`;
  }
}

/** Returns whether a fact has changed. What can no longer be read stays as it was. */
function keep<Value, Fact>(
  facts: Map<string, Fact>,
  changes: readonly RecordChange<Value>[],
  factOf: (value: Value) => Fact | undefined,
): boolean {
  let hasChanged = false;
  for (const change of changes) {
    if (change.kind === "unreadable") continue;
    const fact = change.kind === "put" ? factOf(change.value) : undefined;
    if (Bun.deepEquals(fact, facts.get(change.key))) continue;
    hasChanged = true;
    if (fact === undefined) facts.delete(change.key);
    else facts.set(change.key, fact);
  }
  return hasChanged;
}

function itself<Value>(value: Value): Value {
  return value;
}
