/**
 * Everything that the agent does with the installed network. Loaded only if there is one.
 *
 *   datastore ── one replica of resources ──┬─▶ policy, floating IPs, routes to local pods    (enforce-policy.ts)
 *                                           ├─▶ outgoing NAT, sources that no pod may use     (agent/nat)
 *                                           ├─▶ the record of this node, the MTU of pods      (keep-node-record.ts)
 *                                           ├─▶ routes between nodes                          (route-between-nodes.ts)
 *   orchestrator's pods of this node ───────┴─▶ endpoints, if another plugin connects pods    (record-endpoints.ts)
 *
 * A part that fails is started again, and does not affect the others; nor does a kind that only it needs and that cannot be
 * listed (on the orchestrator's API: no CRD, no role).
 */
import { followClusterSources } from "../agent/nat/follow-cluster-sources.ts";
import { followNat } from "../agent/nat/follow-nat.ts";
import type { SidecarVolumes } from "../agent/sidecars/sidecar-volumes.ts";
import { type AgentPart, superviseParts } from "../agent/supervise.ts";
import { startReplica } from "../datastore/replica.ts";
import { requireGuard } from "../firewall/apply-guard.ts";
import { applyNat } from "../firewall/apply-nat.ts";
import { setClusterSources } from "../firewall/source-prefixes.ts";
import type { NetfilterAccess } from "../linux/netfilter-access.ts";
import { enforcePolicy } from "./enforce-policy.ts";
import { type FollowedNetwork, KINDS_OF_PARTS, networkKinds } from "./followed-network.ts";
import { keepNodeRecord } from "./keep-node-record.ts";
import { onceEach } from "./once-each.ts";
import type { PolicyNetwork } from "./policy-network.ts";
import { needsRecordedEndpoints, recordEndpoints } from "./record-endpoints.ts";
import { betweenNodes } from "./route-between-nodes.ts";

interface RunMeans extends Pick<FollowedNetwork, "means" | "log"> {
  readonly signal: AbortSignal;
  readonly netfilter: NetfilterAccess;
  /** Of the pods with a sidecar. */
  readonly volumes: SidecarVolumes;
  /** Gets a function that returns whether pods are routed. */
  readonly routed: (arePodsRouted: () => boolean) => void;
}

/** Rejects if the datastore cannot be opened. The kernel keeps the rules and routes that it has. */
export async function runNetwork(
  network: PolicyNetwork,
  { means, signal, log, netfilter, volumes, routed }: RunMeans,
): Promise<void> {
  const { elapsed, random, wait } = means.clock;
  const warn = (message: string) => log(message, "WARNING");
  const store = await means.openDatastore(network.settings, warn);
  const lost = onceEach(warn);
  const replica = startReplica(store, networkKinds(network.node), {
    signal,
    random,
    clock: { now: elapsed, wait },
    watches: network.settings.kind === "orchestrator" ? "per kind" : "together",
    report: ({ message }) => lost.report(message),
  });
  const followed: FollowedNetwork = { means, network, store, replica, heard: lost.forget, log };
  const routing = betweenNodes(followed);
  routed(routing.arePodsRouted);
  const parts = [
    {
      name: "the enforcement of network policy",
      run: (stop: AbortSignal) => enforcePolicy({ ...followed, netfilter, volumes, routing: routing.facts }, stop),
    },
    {
      name: "the record of this node",
      run: (stop: AbortSignal) =>
        keepNodeRecord(replica.part(KINDS_OF_PARTS.nodeRecord).updates(stop), network, {
          ...{ means, store, signal: stop, log },
        }),
    },
    {
      name: "outgoing NAT",
      run: (stop: AbortSignal) =>
        followNat(replica.part(KINDS_OF_PARTS.nat).updates(stop), {
          node: network.node,
          write: (pools) => netfilter.withSocket((socket) => applyNat(socket, pools)),
          log,
        }),
    },
    ...(network.furtherSources === undefined || network.isForAgentOnly
      ? []
      : [clusterSourcesPart(followed, network.furtherSources, netfilter)]),
    ...(needsRecordedEndpoints(followed)
      ? [{ name: "the endpoints of pods", run: (stop: AbortSignal) => recordEndpoints(followed, stop) }]
      : []),
    ...(routing.isNeeded ? [{ name: "the routes between nodes", run: routing.run }] : []),
  ];
  try {
    await superviseParts(parts, { signal, report: warn, elapsed, wait });
  } finally {
    await replica.ended;
    await store.close();
  }
}

function clusterSourcesPart(
  { means, replica, log }: FollowedNetwork,
  { permittedInCluster: permitted }: NonNullable<PolicyNetwork["furtherSources"]>,
  netfilter: NetfilterAccess,
): AgentPart {
  return {
    name: "the sources that no pod may use",
    run: (signal) =>
      followClusterSources(replica.part(KINDS_OF_PARTS.clusterSources).updates(signal), {
        permitted,
        write: (sources) =>
          netfilter.withSocket(async (socket) => {
            await requireGuard(socket);
            return setClusterSources(socket, sources);
          }),
        log,
        wait: means.clock.wait,
        signal,
      }),
  };
}
