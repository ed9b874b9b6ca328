/**
 * Enforces the policies of one datastore on this host, and keeps the routes to its workloads, until the
 * signal is aborted.
 */

import { forgetConnectionsOf } from "../../linux/conntrack-entries.ts";
import { closeNetlinkSocket } from "../../linux/netlink-socket.ts";
import { watchRoutes } from "../../linux/rtnetlink/route-monitor.ts";
import { uplinkNames } from "../../linux/rtnetlink/uplinks.ts";
import { millisecondsOf } from "../../model/duration.ts";
import { workloadPrefixes } from "../../model/interface-prefix.ts";
import { nodeAgentSettings } from "../../model/node-agent-configuration.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { PolicyCompiler } from "../../policy/compile/compiler.ts";
import type { PolicyUpdate } from "../../policy/inputs.ts";
import type { TableDelta } from "../../policy/table/desired-table.ts";
import { followRoutes } from "../local-routes/follow-routes.ts";
import { openKernelRoutes } from "../local-routes/kernel-routes.ts";
import { readRoutedEndpoints } from "../local-routes/recorded-endpoints.ts";
import { type FollowedNetwork, KINDS_OF_PARTS } from "../network/followed-network.ts";
import type { RoutingFacts } from "../node-routes/routing-facts.ts";
import { onceEach } from "../once-each.ts";
import { feedSidecars } from "../sidecars/feed-sidecars.ts";
import type { SidecarVolumes } from "../sidecars/sidecar-volumes.ts";
import { atMostEvery } from "./at-most-every.ts";
import { countBatches } from "./counted-kernel.ts";
import { enforcementLog } from "./enforcement-log.ts";
import type { PolicyFacts } from "./facts.ts";
import { GoneAddresses } from "./gone-addresses.ts";
import { HostInterfaces } from "./host-interfaces.ts";
import { openKernelTable } from "./kernel-table.ts";
import { linksUp } from "./links-up.ts";
import { applyUpdates, guardTable } from "./policy-loop.ts";
import { StatusFiles } from "./status-files.ts";
import { TableKeeper } from "./table-keeper.ts";
import { sumTraffic } from "./traffic.ts";
import { reportUnplaced } from "./unplaced-report.ts";
import { WorkloadLinks } from "./workload-links.ts";

export interface EnforceMeans extends FollowedNetwork {
  /** For metrics. */
  readonly routing: () => RoutingFacts | undefined;
  /** Of the pods with a sidecar. */
  readonly volumes: SidecarVolumes;
}

/** However often metrics are read, the rules are not read more often. */
const TRAFFIC_MILLISECONDS = 1_000;

/** Other work of the agent comes first. */
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Rejects if it cannot go on. The kernel keeps the rules that it has. */
export async function enforcePolicy(
  { means, network, store, replica: whole, proven, heard, log, routing, volumes }: EnforceMeans,
  signal: AbortSignal,
): Promise<void> {
  const replica = whole.part(KINDS_OF_PARTS.policy);
  const warn = (message: string) => log(message, "WARNING");
  const ending = new AbortController();
  const stop = AbortSignal.any([signal, ending.signal]);
  const { kernel: host, files } = means;
  const { elapsed, wait } = means.clock;
  const { kernel, counts } = countBatches(openKernelTable(host), elapsed);
  const refused = onceEach((message) => log(message, "ERROR"));
  const { node } = network;
  const compiler = new PolicyCompiler({ node, hasServices: store.isOrchestratorApi });
  const isWanted = () => network.isPolicyRequired || compiler.policyCount + compiler.hostEndpointCount > 0;
  const interfaces = new HostInterfaces(host, (now) => keeper.updateInterfaces(now));
  const compiled = () => {
    const found = interfaces.follow(compiler.dependsOnAddresses);
    if (found !== undefined) compiler.setHostInterfaces(found);
    if (compiler.hasOtherPrefixes) compiler.setUplinks(uplinkNames(links));
    compiler.setWorkloadLinks(workloadLinks.follow(compiler.addressesToFind));
  };
  const tracking = host.openSocket("netfilter");
  const gone = new GoneAddresses({
    forget: async (addresses) => void (await forgetConnectionsOf(tracking, addresses, nextTurn)),
    report: onceEach(warn).report,
    wait,
  });
  const changed = (delta: TableDelta) => gone.changed(delta);
  const adopted = (delta: TableDelta) => gone.adopted(delta);
  const keeper = new TableKeeper({ compiler, kernel, isWanted, report: warn, compiled, changed, adopted });
  const sidecars = feedSidecars({ means, volumes, network, store, compiler, keeper, log });
  const routeEvents = (until: AbortSignal) => watchRoutes(host, until);
  const routes = openKernelRoutes(host);
  const workloadLinks = new WorkloadLinks({
    ...{ kernel: routes, events: routeEvents, wait, report: onceEach(warn).report },
    changed(now) {
      const moved = keeper.updateWorkloadLinks(now);
      if (isWanted()) status.update(moved, compiler.localEndpoints);
      sidecars.policyChanged();
    },
  });
  const links = host.openSocket("route");
  const upOf = (names: readonly string[]) => linksUp(links, names);
  const status = new StatusFiles({
    folder: files.openFolder(network.statusDirectory),
    upOf,
    wait,
    elapsed,
    report: onceEach(warn).report,
  });
  let settings = nodeAgentSettings([], node);
  let isApplied = false;
  let checkedAt = elapsed();
  const noteEnforcement = enforcementLog((message) => log(message, "INFO"));
  const applied = ({ snapshot, changes }: PolicyUpdate) => {
    heard();
    isApplied = true;
    settings = nodeAgentSettings(
      Array.from(snapshot.configurations, ([, value]) => value),
      node,
    );
    const isEnforced = isWanted();
    noteEnforcement({ isEnforced, policies: compiler.policyCount, workloads: compiler.localEndpoints.size });
    if (isEnforced) {
      status.update(
        changes.endpoints.map(({ key }) => key),
        compiler.localEndpoints,
      );
    } else status.clear();
    sidecars.policyChanged();
    gone.update(changes.endpoints);
    for (const { title, effect, reason } of compiler.problems) refused.report(`"${title}" ${effect}: ${reason}`);
  };
  const prefixes = () => workloadPrefixes(settings.interfacePrefix);
  const refreshMilliseconds = () => millisecondsOf(settings.tablesRefreshInterval);
  const readTraffic = atMostEvery(TRAFFIC_MILLISECONDS, elapsed, () => {
    const titles = compiler.policyTitles;
    return sumTraffic(kernel.counts(), (policy) => titles.has(policy));
  });
  const facts = (): PolicyFacts => ({
    endpoints: compiler.localEndpoints.size,
    hostEndpoints: compiler.hostEndpointCount,
    policies: compiler.policyCount,
    problems: compiler.problems.length,
    refusedClaims: proven?.refused ?? [],
    table: compiler.table,
    datastore: replica.status,
    batches: counts(),
    traffic: readTraffic,
    isApplied,
    now: elapsed(),
    checkedAt,
  });
  const checked = () => {
    if (compiler.hasOtherPrefixes) keeper.updateUplinks(uplinkNames(links));
    checkedAt = elapsed();
  };
  const settled = (endpoint: WorkloadEndpoint) => (proven === undefined ? endpoint : proven.settled(endpoint));
  const recorded = () => readRoutedEndpoints(store, { node, settled });
  const loops = [
    followRoutes(replica.updates(stop), {
      ...{
        node,
        network: network.name,
        areEndpointsPods: proven !== undefined,
        kernel: routes,
        recorded,
        report: warn,
        elapsed,
      },
      ...{ events: routeEvents, wait, signal: stop },
    }),
    applyUpdates(replica.updates(stop), { keeper, wait, signal: stop, applied }),
    guardTable({ keeper, wait, signal: stop, elapsed, refreshMilliseconds, checked }),
    interfaces.run(stop),
    workloadLinks.run(stop),
    reportUnplaced({ unplaced: () => compiler.unplacedEndpoints, prefixes, report: warn, wait, signal: stop }),
    status.run(stop),
    sidecars.run(stop),
    gone.run(stop),
    means.serveFacts({
      facts,
      routing,
      sidecars: () => sidecars.facts,
      settings: () => settings,
      wait,
      signal: stop,
      report: onceEach(warn).report,
    }),
  ];
  try {
    await Promise.all(loops.map((loop) => loop.finally(() => ending.abort())));
  } finally {
    await Promise.allSettled(loops);
    kernel.close();
    closeNetlinkSocket(links);
    closeNetlinkSocket(tracking);
    routes.close();
  }
}
