/**
 * Follows everything that BGP on this node depends on, and tells the keeper of BIRD what is wanted.
 *
 *   replica: nodes, pools, BGP resources, settings ─┐
 *   planner of routes: what this node announces ────┼─▶ plan of BGP ─▶ keeper
 *   passwords ──────────────────────────────────────┘
 *
 * Nothing is wanted before all of them are known: half of them would reset sessions and withdraw routes.
 */
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import type { Prefix } from "../../ip/prefix.ts";
import type { IPPool } from "../../model/ip-pool.ts";
import type { Node } from "../../model/node.ts";
import { type NodeAgentConfiguration, nodeAgentSettings } from "../../model/node-agent-configuration.ts";
import type { BgpValues } from "../../routing/bgp/inputs.ts";
import { planBgp } from "../../routing/bgp/sessions.ts";
import type { RoutedNode, RoutedPool } from "../../routing/facts.ts";
import { routedNode } from "../../routing/routed-node.ts";
import { routedPool } from "../../routing/routed-pool.ts";
import type { BirdKeeper, WantedBgp } from "./bird-keeper.ts";
import type { Passwords } from "./passwords.ts";

interface FollowedValues extends BgpValues {
  readonly nodes: Node;
  readonly pools: IPPool;
  readonly configurations: NodeAgentConfiguration;
}

export interface BgpUpdate {
  readonly changes: { readonly [Kind in keyof FollowedValues]: readonly RecordChange<FollowedValues[Kind]>[] };
}

export interface BgpFollowerMeans {
  readonly node: string;
  readonly keeper: Pick<BirdKeeper, "update" | "run">;
  readonly passwords: Passwords;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

const PASSWORDS_MILLISECONDS = 30_000;

export class BgpFollower {
  readonly #means: BgpFollowerMeans;
  readonly #nodes = new Map<string, RoutedNode>();
  readonly #pools = new Map<string, RoutedPool>();
  readonly #settings = new Map<string, NodeAgentConfiguration>();
  readonly #configurations = new Map<string, BgpValues["bgpConfigurations"]>();
  readonly #peers = new Map<string, BgpValues["bgpPeers"]>();
  readonly #filters = new Map<string, BgpValues["bgpFilters"]>();
  #announced: readonly Prefix[] | undefined;
  #hasResources = false;

  constructor(means: BgpFollowerMeans) {
    this.#means = means;
  }

  /** Whether it has been told what to announce, if only that there is nothing. */
  get isAnnouncing(): boolean {
    return this.#announced !== undefined;
  }

  /** What the plan of routes announces from now on. Returns at once. */
  announce(prefixes: Iterable<Prefix>): void {
    this.#announced = [...prefixes];
    this.#tell();
  }

  /** Until the updates have ended and the signal is aborted. BIRD goes on. */
  async run(updates: AsyncIterable<BgpUpdate>, signal: AbortSignal): Promise<void> {
    await Promise.all([this.#follow(updates), this.#followPasswords(signal), this.#means.keeper.run(signal)]);
  }

  async #follow(updates: AsyncIterable<BgpUpdate>): Promise<void> {
    for await (const { changes } of updates) {
      if (this.#hasResources && !isOfBgp(changes)) continue;
      keep(this.#nodes, changes.nodes, routedNode);
      keep(this.#pools, changes.pools, routedPool);
      keep(this.#settings, changes.configurations, itself);
      keep(this.#configurations, changes.bgpConfigurations, itself);
      keep(this.#peers, changes.bgpPeers, itself);
      keep(this.#filters, changes.bgpFilters, itself);
      await this.#means.passwords.require([
        ...[...this.#peers.values()].flatMap(({ spec }) => spec.password ?? []),
        ...[...this.#configurations.values()].flatMap(({ spec }) => spec.nodeMeshPassword ?? []),
      ]);
      this.#hasResources = true;
      this.#tell();
    }
  }

  async #followPasswords(signal: AbortSignal): Promise<void> {
    const { wait, passwords } = this.#means;
    while (!signal.aborted) {
      await wait(PASSWORDS_MILLISECONDS, signal);
      if (!signal.aborted && (await passwords.refresh())) this.#tell();
    }
  }

  #tell(): void {
    const announced = this.#announced;
    if (!this.#hasResources || announced === undefined) return;
    // Computed when the keeper gets to it: once for many changes.
    this.#means.keeper.update(() => this.#wanted(announced));
  }

  #wanted(announced: readonly Prefix[]): WantedBgp {
    const { node, passwords } = this.#means;
    if (nodeAgentSettings([...this.#settings.values()], node).bgp === "Disabled") {
      return { reason: '"bgp" is "Disabled" in the NodeAgentConfiguration', problems: [] };
    }
    const plan = planBgp({
      ...{ node, announced, passwords: passwords.all },
      nodes: this.#nodes.values(),
      pools: this.#pools.values(),
      configurations: this.#configurations.values(),
      peers: this.#peers.values(),
      filters: this.#filters.values(),
    });
    if (plan.sessions.length > 0) return { plan };
    const reason = "there is no other node with an address in the mesh, and no BGPPeer for this node";
    return { reason, problems: plan.problems };
  }
}

function isOfBgp(changes: BgpUpdate["changes"]): boolean {
  const { nodes, pools, configurations, bgpConfigurations, bgpPeers, bgpFilters } = changes;
  return [nodes, pools, configurations, bgpConfigurations, bgpPeers, bgpFilters].some(({ length }) => length > 0);
}

/** What can no longer be read stays as it was. */
function keep<Value, Fact>(
  facts: Map<string, Fact>,
  changes: readonly RecordChange<Value>[],
  factOf: (value: Value) => Fact | undefined,
): void {
  for (const change of changes) {
    if (change.kind === "unreadable") continue;
    const fact = change.kind === "put" ? factOf(change.value) : undefined;
    if (fact === undefined) facts.delete(change.key);
    else facts.set(change.key, fact);
  }
}

function itself<Value>(value: Value): Value {
  return value;
}
