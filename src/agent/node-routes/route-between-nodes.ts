/** Keeps the tunnels and routes of this host to the other nodes as the datastore says. */

import type { Replica } from "../../datastore/replica.ts";
import { ROUTING_PROBLEMS_FILE, writeProblems } from "../../health/problems-file.ts";
import { watchNetwork } from "../../linux/rtnetlink/network-monitor.ts";
import type { KnownRouting } from "../../model/routing-state.ts";
import { sendsWrongVxlanChecksums } from "../../routing/checksum-release.ts";
import { blockFacts, FollowedSettings, type RoutedBlockValues, resourceFacts } from "../../routing/inputs.ts";
import { tunnelName } from "../../routing/next-hop.ts";
import type { TunnelName } from "../../routing/plan.ts";
import { type FactChanges, RoutePlanner } from "../../routing/planner.ts";
import { routedPool } from "../../routing/routed-pool.ts";
import { type FollowedNetwork, KINDS_OF_PARTS } from "../network/followed-network.ts";
import { nodeEvents } from "../warning-events.ts";
import { followNetwork } from "./follow-network.ts";
import { openKernelGuard } from "./kernel-guard.ts";
import { openKernelNetwork } from "./kernel-network.ts";
import { NetworkKeeper } from "./network-keeper.ts";
import { ProblemReport } from "./problem-report.ts";
import { arePodsRouted, type RoutingFacts } from "./routing-facts.ts";
import { TunnelPaths } from "./tunnel-paths.ts";

export interface BetweenNodes {
  /** An embedded datastore has one node only. */
  readonly isNeeded: boolean;
  readonly facts: () => RoutingFacts | undefined;
  /** Whether pods can be started on this node: all routes that they need are set by this agent. */
  readonly arePodsRouted: () => boolean;
  /** What people should know of sessions, tunnels and routes of this node. `undefined` while it is not known. Never rejects. */
  readonly known: () => Promise<KnownRouting | undefined>;
  /** Until the signal is aborted. The kernel keeps what it has. */
  readonly run: (signal: AbortSignal) => Promise<void>;
}

export function betweenNodes(followed: FollowedNetwork): BetweenNodes {
  const { blocks } = followed;
  const isNeeded = blocks !== undefined;
  let facts: RoutingFacts = { isEnabled: true, routes: 0, peers: 0, problems: 0, appliedAt: undefined };
  let known: BetweenNodes["known"] = async () => undefined;
  const noted: Noted = {
    facts: (now) => {
      facts = now;
    },
    known: (now) => {
      known = now;
    },
  };
  return {
    isNeeded,
    facts: () => (isNeeded ? facts : undefined),
    arePodsRouted: () => !isNeeded || arePodsRouted(facts),
    known: () => known(),
    run: async (signal) => {
      if (blocks === undefined) return;
      await route({ ...followed, blocks }, noted, signal).finally(() => noted.known(async () => undefined));
    },
  };
}

interface Noted {
  readonly facts: (now: RoutingFacts) => void;
  readonly known: (now: BetweenNodes["known"]) => void;
}

async function route(
  { blocks, ...followed }: FollowedNetwork & { readonly blocks: Replica<RoutedBlockValues> },
  noted: Noted,
  signal: AbortSignal,
): Promise<void> {
  const { means, network, replica, heard, log } = followed;
  const { kernel: host, files } = means;
  const { elapsed, random, wait } = means.clock;
  const warn = (message: string) => log(message, "WARNING");
  const ending = new AbortController();
  const stop = AbortSignal.any([signal, ending.signal]);
  const [kernel, guard] = [openKernelNetwork(host), openKernelGuard(host)];
  const needsOwnChecksums = sendsWrongVxlanChecksums(files.kernelRelease());
  const keeper = new NetworkKeeper({
    ...{ kernel, guard, elapsed, report: warn, needsOwnChecksums },
    poolsOf: (tunnel) => poolsWith(tunnel, followed),
  });
  const planner = new RoutePlanner(network.node, { isEnabled: true, isBgpEnabled: true });
  const { node, orchestrator } = network;
  const peers = () => replica.part(["nodes"]).snapshot?.nodes.size ?? 0;
  const bgp = means.followerOfBgp({
    ...{ node, kube: orchestrator.access, orchestratorNode: orchestrator.nodeName ?? node },
    ...{ kernel: host, peers, random, wait, log },
  });
  const hasOtherNodes = () => peers() > 1;
  const shown = files.openFolder(files.runDirectory);
  const problems = new ProblemReport({
    ...{ report: warn, isOfInterest: hasOtherNodes },
    publish: (lasting) => {
      try {
        shown.write(ROUTING_PROBLEMS_FILE, writeProblems(lasting));
      } catch (failure) {
        warn(`Cannot write "${shown.path}/${ROUTING_PROBLEMS_FILE}": ${failure}`);
      }
    },
  });
  const settings = new FollowedSettings(node);
  const { tunnelProbes: probes } = means;
  const paths =
    probes &&
    new TunnelPaths({
      ...{ node, probes, needsOwnChecksums, folder: shown, clock: means.clock, report: warn },
      setting: () => settings.checksumOffload,
      devices: () => keeper.devices,
      tell: nodeEvents(followed, stop),
    });
  let isPlanned = false;
  const applied = () => {
    // The kernel is also compared before the datastore could be read.
    if (!isPlanned) return;
    paths?.note(planner.plan);
    const count = planner.plan.problems.length + keeper.problems.size;
    const { isEnabled } = planner;
    noted.facts({
      isEnabled,
      routes: keeper.routeCount,
      peers: keeper.peerCount,
      problems: count,
      appliedAt: elapsed(),
    });
    heard();
  };
  noted.known(async () => {
    const ofBgp = isPlanned ? await bgp.known() : undefined;
    if (ofBgp === undefined) return undefined;
    // Records of other nodes are not the matter of this one: each of them would repeat what is wrong with one.
    const broken = hasOtherNodes() ? [...planner.ownProblems, ...keeper.problems] : [];
    const doubtful = hasOtherNodes() ? (paths?.problems ?? []) : [];
    const own = [
      ...broken.map((message) => ({ state: "failed", message }) as const),
      ...doubtful.map((message) => ({ state: "warning", message }) as const),
    ];
    return { ...ofBgp, problems: [...own, ...ofBgp.problems] };
  });
  const loops = [
    followNetwork([resources(replica, { settings, node }, stop), blocksOf(blocks.updates(stop))], {
      ...{ planner, keeper, applied, wait, report: warn, signal: stop },
      events: (until) =>
        watchNetwork({ kernel: host, signal: until, hasNeighbours: (linkIndex) => keeper.hasNeighbours(linkIndex) }),
      isGuardSuspect: () => guard.isSuspect(),
      planned: (plan, change) => {
        isPlanned = true;
        const changed = change.announced.size + change.outsidePools.size;
        if (changed > 0 || !bgp.isAnnouncing) bgp.announce(plan);
      },
    }),
    bgp.run(replica.part(KINDS_OF_PARTS.bgp).updates(stop), stop),
    problems.run(() => [...planner.plan.problems, ...(paths?.problems ?? [])], { wait, signal: stop }),
    ...(paths === undefined ? [] : [paths.run(stop)]),
  ];
  try {
    await Promise.all(loops.map((loop) => loop.finally(() => ending.abort())));
  } finally {
    await Promise.allSettled(loops);
    kernel.close();
    guard.close();
  }
}

async function* resources(
  replica: FollowedNetwork["replica"],
  { settings, node }: { readonly settings: FollowedSettings; readonly node: string },
  signal: AbortSignal,
): AsyncGenerator<FactChanges> {
  for await (const { changes } of replica.part(KINDS_OF_PARTS.routes).updates(signal)) {
    yield { ...settings.facts(changes.configurations), ...resourceFacts(changes, node) };
  }
}

type BlockUpdates = AsyncIterable<{ readonly changes: Parameters<typeof blockFacts>[0] }>;

async function* blocksOf(updates: BlockUpdates): AsyncGenerator<FactChanges> {
  for await (const { changes } of updates) yield blockFacts(changes);
}

/** The names of the pools that need the tunnel. */
function poolsWith(tunnel: TunnelName, { replica }: Pick<FollowedNetwork, "replica">): readonly string[] {
  const pools = Array.from(replica.part(["pools"]).snapshot?.pools ?? [], ([, pool]) => routedPool(pool));
  return pools.flatMap((pool) => {
    const needed =
      pool.mode.kind === "unencapsulated" ? undefined : tunnelName(pool.mode.kind, pool.prefix.network.family);
    return needed === tunnel ? [pool.name] : [];
  });
}
