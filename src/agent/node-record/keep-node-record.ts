/** The loop of the node agent that keeps the record of its node right, with the real host and the installed network config. */

import type { Datastore } from "../../datastore/datastore.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import type { OrchestratorNode } from "../../kube/orchestrator-node.ts";
import { isHostAddress } from "../../linux/rtnetlink/host-address.ts";
import { hostAddresses, sourceTowards } from "../../linux/rtnetlink/host-addresses.ts";
import { watchNetwork } from "../../linux/rtnetlink/network-monitor.ts";
import { uplinkMtu } from "../../linux/rtnetlink/uplink-mtu.ts";
import { onceEach } from "../../log/once-each.ts";
import { POD_MTU_FILE } from "../../routing/pod-mtu.ts";
import type { AgentMeans } from "../means.ts";
import type { AgentNetwork } from "../network/agent-network.ts";
import type { BetweenNodes } from "../node-routes/route-between-nodes.ts";
import { followNodeRecord, type RecordUpdate } from "./follow-node-record.ts";
import { OwnOrchestratorNode } from "./own-orchestrator-node.ts";
import { RoutingAnnotation } from "./routing-annotation.ts";

interface Means {
  readonly means: AgentMeans;
  readonly store: Datastore;
  readonly signal: AbortSignal;
  readonly log: (message: string, level: "INFO" | "WARNING" | "ERROR") => void;
  readonly peers: () => number;
  /** Absent: there are no routes between nodes. */
  readonly routing?: BetweenNodes["known"];
}

export function keepNodeRecord(
  updates: AsyncIterable<RecordUpdate>,
  { node, settings, orchestrator }: AgentNetwork,
  { means, store, signal, log, peers, routing }: Means,
): Promise<void> {
  const { kernel, clock, files } = means;
  const { wait } = clock;
  const problems = onceEach((message) => log(message, "WARNING"));
  const { report } = problems;
  const allocator = openAllocator(store, {
    now: clock.now,
    random: clock.random,
    wait: (milliseconds) => wait(milliseconds, signal),
    isHostAddress: (address) => isHostAddress(kernel, address),
    warn: report,
  });
  const { access, nodeName = node, podCidrFamilies } = orchestrator;
  const read = access && ((name: string) => readNode(means, access, { name, signal }));
  return followNodeRecord(updates, {
    ...{ node, store, allocator, datastore: settings.kind, machineIdentity: files.machineIdentity },
    ...{ wait, signal, report },
    hostAddresses: () => hostAddresses(kernel),
    sourceTowards: (destination, family) => sourceTowards(kernel, destination, family),
    uplinkMtu: () => uplinkMtu(kernel),
    orchestratorNode: new OwnOrchestratorNode({ name: nodeName, families: podCidrFamilies, read, report }),
    writeMtu: (mtu) => files.replaceFile(POD_MTU_FILE, `${mtu}\n`),
    events: (until) => watchNetwork({ kernel, signal: until, hasNeighbours: () => false }),
    log: (message) => log(message, "INFO"),
    forgetProblems: () => problems.forget(),
    ...(routing === undefined ? {} : { routing: new RoutingAnnotation({ known: routing, peers, ...clock }) }),
  });
}

type Access = NonNullable<AgentNetwork["orchestrator"]["access"]>;

async function readNode(
  means: AgentMeans,
  access: Access,
  { name, signal }: { readonly name: string; readonly signal: AbortSignal },
): Promise<OrchestratorNode | undefined> {
  const { readOrchestratorNode } = await import("../../kube/orchestrator-node.ts");
  const client = await means.openKubeClient(access, () => {});
  return readOrchestratorNode(client, name, signal).finally(() => client.close());
}
