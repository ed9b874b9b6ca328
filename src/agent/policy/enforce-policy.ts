/**
 * Enforces the policies of one datastore on this host, and keeps the routes to its workloads, until the
 * signal is aborted.
 *
 *   update of the replica ──▶ EnforcedTable: compiled, written, acknowledged ──▶ applied(): status of endpoints, features,
 *                                                                               connections of pods that are gone, log
 *   each second           ──▶ EnforcedTable: what others changed is reverted ──▶ checked(): uplinks, IPVS
 *   requests by HTTP      ──▶ facts(): health and metrics
 */

import { join } from "node:path";
import { RULE_NUMBERS_FILE } from "../../config/run-directory.ts";
import { formatAddress } from "../../ip/address.ts";
import { forgetConnectionsOf } from "../../linux/conntrack-entries.ts";
import { closeNetlinkSocket, type NetlinkSocket } from "../../linux/netlink-socket.ts";
import { readInterfaces } from "../../linux/rtnetlink/interface-monitor.ts";
import { findLinkByIndex, listLinks } from "../../linux/rtnetlink/link.ts";
import { linkTowards } from "../../linux/rtnetlink/route-lookup.ts";
import { watchRoutes } from "../../linux/rtnetlink/route-monitor.ts";
import { onceEach } from "../../log/once-each.ts";
import { millisecondsOf } from "../../model/duration.ts";
import { workloadPrefixes } from "../../model/interface-prefix.ts";
import { nodeAgentSettings } from "../../model/node-agent-configuration.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { addressesOfEndpoint } from "../../policy/compile/entity.ts";
import type { PolicyChanges, PolicyUpdate } from "../../policy/inputs.ts";
import { nextTurn } from "../../timers.ts";
import type { EnforcementFollower, StartedFeature } from "../features.ts";
import type { FlowsOfNode } from "../flows/flows-of-node.ts";
import { followRoutes } from "../local-routes/follow-routes.ts";
import { openKernelRoutes, type RouteKernel } from "../local-routes/kernel-routes.ts";
import { unknownLinks } from "../local-routes/local-routes.ts";
import { readRoutedEndpoints } from "../local-routes/recorded-endpoints.ts";
import { type FollowedNetwork, KINDS_OF_PARTS } from "../network/followed-network.ts";
import type { RoutingFacts } from "../node-routes/routing-facts.ts";
import { eventClient } from "../warning-events.ts";
import { ConnectionEnder } from "./end-connections.ts";
import { EnforcedResources } from "./enforced-resources.ts";
import { EnforcedTable } from "./enforced-table.ts";
import { enforcementLog } from "./enforcement-log.ts";
import type { PolicyFacts } from "./facts.ts";
import { GoneAddresses } from "./gone-addresses.ts";
import { linksUp } from "./links-up.ts";
import { OpenConnections } from "./open-connections.ts";
import { PolicyEvents } from "./policy-events.ts";
import { applyUpdates, guardTable } from "./policy-loop.ts";
import { ShownProblems } from "./shown-problems.ts";
import { StatusFiles } from "./status-files.ts";
import { costOfChanges, reportLongWaits, WaitingPolicies } from "./turns.ts";
import { reportUnplaced } from "./unplaced-report.ts";

export interface EnforceMeans extends FollowedNetwork {
  /** For metrics. */
  readonly routing: () => RoutingFacts | undefined;
  readonly features: readonly StartedFeature[];
  readonly flows: FlowsOfNode;
}

/** Rejects if it cannot go on. The kernel keeps the rules that it has. */
export async function enforcePolicy(given: EnforceMeans, signal: AbortSignal): Promise<void> {
  const enforcement = new Enforcement(given);
  const ending = new AbortController();
  const loops = enforcement.loops(AbortSignal.any([signal, ending.signal]));
  try {
    await Promise.all(loops.map((loop) => loop.finally(() => ending.abort())));
  } finally {
    await Promise.allSettled(loops);
    enforcement.close();
  }
}

class Enforcement {
  private readonly routes: RouteKernel;
  private readonly links: NetlinkSocket;
  private readonly tracking: NetlinkSocket;
  private readonly table: EnforcedTable;
  private readonly waiting: WaitingPolicies;
  private readonly noteWaits: ReturnType<typeof reportLongWaits>;
  private readonly status: StatusFiles;
  private readonly gone: GoneAddresses;
  private readonly open: OpenConnections;
  private readonly events: PolicyEvents | undefined;
  private readonly followers: readonly EnforcementFollower[];
  private readonly noteEnforcement: ReturnType<typeof enforcementLog>;
  private readonly endOffer: () => void;
  /** The keys of all nodes of the cluster. */
  private readonly nodes = new Set<string>();
  private readonly problems: ShownProblems;
  private settings: ReturnType<typeof nodeAgentSettings>;
  private snapshot: PolicyUpdate["snapshot"] | undefined;
  private isApplied = false;
  private checkedAt: number;

  constructor(private readonly given: EnforceMeans) {
    const { means, network } = given;
    this.routes = openKernelRoutes(means.kernel);
    this.links = means.kernel.openSocket("route");
    this.tracking = means.kernel.openSocket("netfilter");
    this.gone = this.forgetter();
    this.open = this.openConnections();
    this.events = this.policyEvents();
    this.problems = new ShownProblems({
      ...{ error: (message) => given.log(message, "ERROR"), warn: this.warn },
      folder: means.files.openFolder(means.files.runDirectory),
    });
    this.table = this.emptyTable();
    this.waiting = this.waitingPolicies();
    this.noteWaits = reportLongWaits(this.warn);
    this.status = this.statusFiles();
    const { compiler, keeper, flows } = this.table;
    this.endOffer = given.flows.offerRules(flows);
    this.followers = given.features.map((feature) => feature.follow({ ...given, compiler, keeper, flows }));
    this.noteEnforcement = enforcementLog((message) => given.log(message, "INFO"));
    this.settings = nodeAgentSettings([], network.node);
    this.checkedAt = means.clock.elapsed();
  }

  /** Each ends when the signal is aborted; one that rejects ends the enforcement. */
  loops(stop: AbortSignal): readonly Promise<void>[] {
    const { table, replica } = this;
    const { elapsed, wait } = this.given.means.clock;
    const loop = { keeper: table.keeper, wait, signal: stop };
    return [
      this.followLocalRoutes(stop),
      applyUpdates(replica.updates(stop), {
        ...{ ...loop, elapsed, waiting: this.waiting, applied: (update, joined) => this.applied(update, joined) },
      }),
      guardTable({
        ...{ ...loop, elapsed, checked: () => this.checked() },
        refreshMilliseconds: () => millisecondsOf(this.settings.tablesRefreshInterval),
      }),
      ...table.loops(stop),
      reportUnplaced({
        ...{ report: this.warn, wait, signal: stop },
        unplaced: () => table.compiler.unplacedEndpoints,
        prefixes: () => workloadPrefixes(this.settings.interfacePrefix),
      }),
      this.status.run(stop),
      ...this.followers.map((follower) => follower.run(stop)),
      this.gone.run(stop),
      this.open.run(stop),
      ...(this.events === undefined ? [] : [this.events.run(stop)]),
      this.serveFacts(stop),
    ];
  }

  close(): void {
    this.endOffer();
    this.table.close();
    closeNetlinkSocket(this.links);
    closeNetlinkSocket(this.tracking);
    this.routes.close();
  }

  private readonly warn = (message: string) => this.given.log(message, "WARNING");

  private get replica() {
    return this.given.replica.part(KINDS_OF_PARTS.policy);
  }

  private emptyTable(): EnforcedTable {
    const { means, network, store } = this.given;
    return new EnforcedTable({
      ...{ host: means.kernel, clock: means.clock, node: network.node, report: this.warn },
      patiently: means.patiently,
      ruleNumbersPath: join(means.files.runDirectory, RULE_NUMBERS_FILE),
      hasServices: store.isOrchestratorApi === true,
      isRequired: network.isPolicyRequired,
      hasUnknownContainers: (known) => unknownLinks(known, listLinks(this.links), network.name).length > 0,
      hasIpvs: means.files.hasIpvs,
      routes: { kernel: this.routes, events: this.routeEvents },
      changed: (delta) => this.gone.changed(delta),
      adopted: (delta, table) => this.gone.adopted(delta, table),
      moved: (endpoints) => this.moved(endpoints),
    });
  }

  private waitingPolicies(): WaitingPolicies {
    const { compiler } = this.table;
    return new WaitingPolicies(
      (namespace, changes) =>
        costOfChanges(changes, {
          reachesLimit: (size) => compiler.reachesLimit(namespace, size),
          isCarriedOut: (change) => compiler.isCarriedOut(change),
        }),
      this.given.means.clock.elapsed,
    );
  }

  private statusFiles(): StatusFiles {
    const { means, network } = this.given;
    return new StatusFiles({
      folder: means.files.openFolder(network.statusDirectory),
      upOf: (names) => linksUp(this.links, names),
      ...means.clock,
      report: onceEach(this.warn).report,
    });
  }

  private forgetter(): GoneAddresses {
    return new GoneAddresses({
      forget: async (addresses) => void (await forgetConnectionsOf(this.tracking, addresses, nextTurn)),
      report: onceEach(this.warn).report,
      wait: this.given.means.clock.wait,
    });
  }

  private openConnections(): OpenConnections {
    const { means } = this.given;
    const { kernel, clock, openTcpProber: openProber } = means;
    const { report } = onceEach(this.warn);
    return new OpenConnections({
      ...{ kernel, clock, report, enforced: () => this.enforcedResources() },
      ender: new ConnectionEnder({ kernel, openProber, elapsed: clock.elapsed, report }),
      ended: (count) => this.given.log(`Ended ${count} open connections that policy denies now`, "INFO"),
    });
  }

  private enforcedResources(): EnforcedResources | undefined {
    const { snapshot, links } = this;
    if (snapshot === undefined) return undefined;
    return EnforcedResources.read({
      ...{ snapshot, compiler: this.table.compiler, former: this.waiting.former },
      ...{ node: this.given.network.node, hasServices: this.given.store.isOrchestratorApi === true },
      interfaces: () => readInterfaces(links),
      interfaceTowards: (address) => {
        const index = linkTowards(links, address);
        return index === undefined ? undefined : findLinkByIndex(links, index)?.name;
      },
    });
  }

  private policyEvents(): PolicyEvents | undefined {
    const { means, network } = this.given;
    const openClient = eventClient(this.given, this.warn);
    if (openClient === undefined) return undefined;
    return new PolicyEvents({ openClient, clock: means.clock, node: network.node, reports: onceEach(this.warn) });
  }

  private readonly routeEvents = (until: AbortSignal) => watchRoutes(this.given.means.kernel, until);

  private followLocalRoutes(stop: AbortSignal): Promise<void> {
    const { means, network, store, proven } = this.given;
    const { node } = network;
    const settled = (endpoint: WorkloadEndpoint) => (proven === undefined ? endpoint : proven.settled(endpoint));
    return followRoutes(this.replica.updates(stop), {
      ...{ node, network: network.name, areEndpointsPods: proven !== undefined },
      recorded: () => readRoutedEndpoints(store, { node, settled }),
      ...{ kernel: this.routes, events: this.routeEvents, report: this.warn, ...means.clock, signal: stop },
    });
  }

  /** The kernel has acknowledged the update. */
  private applied({ snapshot, changes }: PolicyUpdate, joined: readonly PolicyChanges[]): void {
    const { compiler, isWanted } = this.table;
    this.given.heard();
    this.isApplied = true;
    this.snapshot = snapshot;
    this.settings = nodeAgentSettings(
      Array.from(snapshot.configurations, ([, value]) => value),
      this.given.network.node,
    );
    this.logEnforcement();
    this.table.flows.applied();
    if (isWanted) {
      this.status.update(
        changes.endpoints.map(({ key }) => key),
        compiler.localEndpoints,
      );
    } else this.status.clear();
    for (const follower of this.followers) follower.policyChanged();
    this.gone.update(changes.endpoints);
    const endsConnections = this.settings.openConnections === "End" && isWanted && this.table.keeper.hasTable;
    this.open.changed(endsConnections, [changes, ...joined]);
    for (const { kind, key } of changes.nodes ?? []) {
      if (kind === "delete") this.nodes.delete(key);
      else this.nodes.add(key);
    }
    this.events?.update(compiler.closedPolicies, this.nodes.size);
    this.problems.show(compiler.problems, compiler.warnings);
  }

  private logEnforcement(): void {
    const { compiler, keeper, isWanted } = this.table;
    const [policies, workloads] = [compiler.policyCount, compiler.localEndpoints.size];
    this.noteEnforcement({ isEnforced: isWanted, isKept: keeper.keepsFormer, policies, workloads });
  }

  /** The kernel has acknowledged the rules of endpoints that are reached by other links now. */
  private moved(endpoints: readonly string[]): void {
    const { isWanted, compiler } = this.table;
    if (isWanted) this.status.update(endpoints, compiler.localEndpoints);
    for (const follower of this.followers) follower.policyChanged();
    const moved = endpoints.flatMap((key) => compiler.localEndpoints.get(key)?.endpoint ?? []);
    this.open.moved(new Set(moved.flatMap(addressesOfEndpoint).map(formatAddress)));
  }

  /** What others changed in the table is reverted. */
  private checked(): void {
    this.table.lookAtHost();
    if (this.isApplied) {
      this.logEnforcement();
      this.table.flows.labelMore();
      this.table.flows.applied();
    }
    this.noteWaits(this.waiting.facts);
    this.checkedAt = this.given.means.clock.elapsed();
  }

  private serveFacts(signal: AbortSignal): Promise<void> {
    const { means, routing, flows } = this.given;
    return means.serveFacts({
      ...{ routing, wait: means.clock.wait, signal, report: onceEach(this.warn).report },
      facts: () => this.facts(),
      ofFeatures: () => `${this.followers.map((follower) => follower.metrics()).join("")}${flows.metrics()}`,
      settings: () => this.settings,
    });
  }

  private facts(): PolicyFacts {
    const { table, isApplied, checkedAt } = this;
    return {
      ...table.facts,
      traffic: table.readTraffic,
      waiting: this.waiting.facts,
      refusedClaims: this.given.proven?.refused ?? [],
      datastore: this.replica.status,
      blocks: this.given.blocks?.status,
      now: this.given.means.clock.elapsed(),
      ...{ isApplied, checkedAt },
    };
  }
}

/** Other work of the agent comes first. */
