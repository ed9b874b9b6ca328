/** The loop of the node agent that keeps the record of its node right, with the real host and the installed network config. */
import { followNodeRecord, type RecordUpdate } from "../agent/node-record/follow-node-record.ts";
import { OwnOrchestratorNode } from "../agent/node-record/own-orchestrator-node.ts";
import type { Datastore } from "../datastore/datastore.ts";
import { identity } from "../identity.ts";
import { openAllocator } from "../ipam/allocator.ts";
import type { OrchestratorNode } from "../kube/orchestrator-node.ts";
import type { SocketOpener } from "../linux/netlink-socket.ts";
import { replaceFile } from "../linux/replace-file.ts";
import { isHostAddress } from "../linux/rtnetlink/host-address.ts";
import { watchNetwork } from "../linux/rtnetlink/network-monitor.ts";
import { POD_MTU_FILE } from "../routing/pod-mtu.ts";
import { hostAddresses, sourceTowards } from "./host-addresses.ts";
import { onceEach } from "./once-each.ts";
import { ownMachine } from "./own-machine.ts";
import type { PolicyNetwork } from "./policy-network.ts";
import { uplinkMtu } from "./uplink-mtu.ts";

interface Means {
  readonly kernel: SocketOpener;
  readonly store: Datastore;
  readonly signal: AbortSignal;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly log: (message: string, level: "INFO" | "WARNING" | "ERROR") => void;
}

export function keepNodeRecord(
  updates: AsyncIterable<RecordUpdate>,
  { node, settings, orchestrator }: PolicyNetwork,
  { kernel, store, signal, wait, log }: Means,
): Promise<void> {
  const problems = onceEach((message) => log(message, "WARNING"));
  const { report } = problems;
  const allocator = openAllocator(store, {
    now: () => new Date(),
    random: Math.random,
    wait: (milliseconds) => wait(milliseconds, signal),
    isHostAddress: (address) => isHostAddress(kernel, address),
    warn: report,
  });
  const { access, nodeName = node, podCidrFamilies } = orchestrator;
  const read = access && ((name: string) => readNode(access, name, signal));
  return followNodeRecord(updates, {
    ...{ node, store, allocator, datastore: settings.kind, machineIdentity: ownMachine },
    ...{ wait, signal, report },
    hostAddresses: () => hostAddresses(kernel),
    sourceTowards: (destination, family) => sourceTowards(kernel, destination, family),
    uplinkMtu: () => uplinkMtu(kernel),
    orchestratorNode: new OwnOrchestratorNode({ name: nodeName, families: podCidrFamilies, read, report }),
    writeMtu: (mtu) => replaceFile(POD_MTU_FILE, `${mtu}\n`),
    events: (until) => watchNetwork({ kernel, signal: until, hasNeighbours: () => false }),
    log: (message) => log(message, "INFO"),
    forgetProblems: () => problems.forget(),
  });
}

type Access = NonNullable<PolicyNetwork["orchestrator"]["access"]>;

async function readNode(access: Access, name: string, signal: AbortSignal): Promise<OrchestratorNode | undefined> {
  const { openKubeClient } = await import("../kube/client.ts");
  const { readOrchestratorNode } = await import("../kube/orchestrator-node.ts");
  const client = await openKubeClient(access, {
    environment: process.env,
    warn: () => {},
    now: () => new Date(),
    elapsed: () => performance.now(),
    program: identity.nodeAgent,
  });
  return readOrchestratorNode(client, name, signal).finally(() => client.close());
}
