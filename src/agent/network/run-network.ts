/**
 * Everything that the agent does with the installed network. Loaded only if there is one.
 *
 *   datastore ── one replica of resources ──┬─▶ policy, routes to local pods                  (enforce-policy.ts)
 *                                           ├─▶ outgoing NAT, floating IPs, the guard         (agent/tables)
 *                                           ├─▶ the record of this node, the MTU of pods      (keep-node-record.ts)
 *                                           ├─▶ routes between nodes                          (route-between-nodes.ts)
 *                                           ├─▶ what the collector of flows is told           (agent/flows)
 *                                           ▲ what annotations of pods claim is proven first  (agent/endpoints)
 *   datastore ── replica of blocks ─────────┴─▶ routes between nodes
 *   orchestrator's pods of this node ───────┴─▶ endpoints, if another plugin connects pods    (record-endpoints.ts)
 *
 * A part that fails is started again, and does not affect the others; nor does a kind that only it needs and that cannot be
 * listed (on the orchestrator's API: no CRD, no role).
 */

import { startReplica } from "../../datastore/replica.ts";
import { attachmentsFolder, readAttachment } from "../../ipam/attachment-record.ts";
import { REFUSED_CLAIMS_FILE, writeRefusedClaims } from "../../ipam/refused-claims.ts";
import type { NetfilterAccess } from "../../linux/netfilter-access.ts";
import { onceEach } from "../../log/once-each.ts";
import { OwnerNumbers } from "../../model/block-owners.ts";
import { routedBlockKinds } from "../../routing/inputs.ts";
import { routedPool } from "../../routing/routed-pool.ts";
import { ProvenEndpoints, type ProvenMeans } from "../endpoints/proven-endpoints.ts";
import { needsRecordedEndpoints, recordEndpoints } from "../endpoints/record-endpoints.ts";
import type { StartedFeature } from "../features.ts";
import { adoptFloating, describeAdopted } from "../floating/adopt-floating.ts";
import { flowParts } from "../flows/flow-part.ts";
import { FlowsOfNode } from "../flows/flows-of-node.ts";
import { keepNodeRecord } from "../node-record/keep-node-record.ts";
import { betweenNodes } from "../node-routes/route-between-nodes.ts";
import { enforcePolicy } from "../policy/enforce-policy.ts";
import { superviseParts } from "../supervise.ts";
import { sharedTablesParts } from "../tables/shared-tables.ts";
import { recordNodeName, upkeepPart } from "../upkeep/upkeep-part.ts";
import type { AgentNetwork } from "./agent-network.ts";
import { type FollowedNetwork, KINDS_OF_PARTS, networkKinds } from "./followed-network.ts";
import { reportDatastore } from "./report-datastore.ts";
import { keepSeenRevisions } from "./seen-revisions.ts";

interface RunMeans extends Pick<FollowedNetwork, "means" | "log"> {
  readonly signal: AbortSignal;
  readonly netfilter: NetfilterAccess;
  readonly features: readonly StartedFeature[];
  /** Gets a function that returns whether pods are routed. */
  readonly routed: (arePodsRouted: () => boolean) => void;
}

/** Rejects if the datastore cannot be opened. The kernel keeps the rules and routes that it has. */
export async function runNetwork(
  network: AgentNetwork,
  { means, signal, log, netfilter, features, routed }: RunMeans,
): Promise<void> {
  const { elapsed, random, wait } = means.clock;
  const warn = (message: string) => log(message, "WARNING");
  // Also if the datastore cannot be reached now.
  recordNodeName({ means, network, log });
  const store = await means.openDatastore(network.settings, warn);
  const lost = onceEach(warn);
  const isOrchestrator = network.settings.kind === "orchestrator";
  const options = {
    signal,
    random,
    clock: { now: elapsed, wait },
    // Every node has an agent.
    peers: (): number => replica.part(["nodes"]).snapshot?.nodes.size ?? 0,
    watches: isOrchestrator ? ("per kind" as const) : ("together" as const),
    ...(isOrchestrator && {
      seen: keepSeenRevisions(means.files.openFolder(means.files.runDirectory), onceEach(warn).report),
    }),
    report: ({ message }: { readonly message: string }) => lost.report(message),
  };
  const numbers = isOrchestrator ? new OwnerNumbers(BigInt(Math.floor(random() * 2 ** 52))) : undefined;
  const pools: ProvenMeans["pools"] = () =>
    Array.from(replica.part(["pools"]).snapshot?.pools ?? [], ([, pool]) => routedPool(pool));
  const proven = numbers && provenEndpoints(network, { means, numbers, pools, warn });
  const blocks =
    network.settings.kind === "embedded" ? undefined : startReplica(store, routedBlockKinds(numbers), options);
  const replica = startReplica(store, networkKinds(network.node), {
    ...options,
    ...(proven === undefined ? {} : { refinements: { endpoints: proven.refinement } }),
  });
  const followed: FollowedNetwork = { means, network, store, replica, blocks, proven, heard: lost.forget, log };
  const routing = betweenNodes(followed);
  routed(routing.arePodsRouted);
  const flows = new FlowsOfNode();
  const parts = [
    ...(proven === undefined || blocks === undefined
      ? []
      : [
          {
            name: "the proof of annotations",
            run: (stop: AbortSignal) =>
              proven.run(blocks.updates(stop), {
                refresh: (keys) => replica.refresh("endpoints", keys),
                wait,
                signal: stop,
              }),
          },
        ]),
    {
      name: "the enforcement of network policy",
      run: (stop: AbortSignal) => enforcePolicy({ ...followed, features, flows, routing: routing.facts }, stop),
    },
    {
      name: "the report about the datastore",
      run: (stop: AbortSignal) =>
        reportDatastore({ means, replicas: [replica, ...(blocks ? [blocks] : [])], warn }, stop),
    },
    {
      name: "the record of this node",
      run: (stop: AbortSignal) =>
        keepNodeRecord(replica.part(KINDS_OF_PARTS.nodeRecord).updates(stop), network, {
          ...{ means, store, signal: stop, log, peers: options.peers },
          ...(routing.isNeeded ? { routing: routing.known } : {}),
        }),
    },
    ...sharedTablesParts(followed, netfilter),
    upkeepPart({ ...followed, netfilter }),
    ...flowParts(followed, flows),
    ...(needsRecordedEndpoints(followed)
      ? [{ name: "the endpoints of pods", run: (stop: AbortSignal) => recordEndpoints(followed, stop) }]
      : []),
    ...(routing.isNeeded ? [{ name: "the routes between nodes", run: routing.run }] : []),
  ];
  try {
    await superviseParts(parts, { signal, report: warn, elapsed, wait });
  } finally {
    await Promise.all([replica.ended, blocks?.ended]);
    await store.close();
  }
}

function provenEndpoints(
  { node, features }: AgentNetwork,
  {
    means,
    numbers,
    pools,
    warn,
  }: Pick<RunMeans, "means"> & Pick<ProvenMeans, "numbers" | "pools"> & { readonly warn: (message: string) => void },
): ProvenEndpoints {
  const { openFolder, runDirectory } = means.files;
  const attachments = openFolder(attachmentsFolder(runDirectory));
  const shown = openFolder(runDirectory);
  // While they are off, what a former release has left is not recorded, and the agent removes it from the kernel.
  const adopted = features.floatingIps ? adoptFloating(attachments, means.kernel) : [];
  for (const each of adopted) warn(describeAdopted(each, `interface "${each.hostInterface}"`));
  const unnamed = new Map(adopted.map((each) => [each.hostInterface, each]));
  return new ProvenEndpoints({
    ...{ node, numbers, pools, elapsed: means.clock.elapsed, report: warn },
    attachmentOf: (hostInterface) => readAttachment(attachments, hostInterface),
    allowsFloating: features.floatingIps,
    decided: ({ metadata, spec }) => {
      const each = spec.ipNATs && unnamed.get(spec.interfaceName ?? "");
      if (each === undefined) return;
      unnamed.delete(each.hostInterface);
      warn(describeAdopted(each, `pod ${metadata.namespace}/${spec.pod}`));
    },
    publish: (refused) => {
      try {
        shown.write(REFUSED_CLAIMS_FILE, writeRefusedClaims(refused));
      } catch (failure) {
        warn(`Cannot write "${shown.path}/${REFUSED_CLAIMS_FILE}": ${failure}`);
      }
    },
  });
}
