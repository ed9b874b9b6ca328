/** Records the endpoints of pods that another networking plugin connects, from the orchestrator's API. */

import type { Datastore } from "../../datastore/datastore.ts";
import { podRecords } from "../../datastore/kube/pod-records.ts";
import { openKubeStore } from "../../datastore/kube/store.ts";
import type { KindTable } from "../../datastore/replica/kinds.ts";
import { startReplica } from "../../datastore/replica.ts";
import { PluginError } from "../../errors.ts";
import { refusingAnotherClusterOnce } from "../../ipam/confirm-cluster.ts";
import { liveObjects } from "../../kube/live-objects.ts";
import { onceEach } from "../../log/once-each.ts";
import { POD_RECORDS_PREFIX, type PodRecord, readPodRecord } from "../../model/pod-record.ts";
import type { FollowedNetwork } from "../network/followed-network.ts";
import { followPodEndpoints } from "./follow-pod-endpoints.ts";

const POD_KINDS: KindTable<{ readonly pods: PodRecord }> = {
  pods: { prefix: POD_RECORDS_PREFIX, decode: ({ key, value }) => readPodRecord(value, key) },
};

/** Only if another plugin connects the pods, and the datastore is not the orchestrator's API, whose pods are endpoints. */
export function needsRecordedEndpoints({ network }: Pick<FollowedNetwork, "network">): boolean {
  return network.isForAgentOnly && network.settings.kind === "etcd";
}

/** Until the signal is aborted. Rejects if it cannot go on. */
export async function recordEndpoints(
  { means, network, store, replica, log }: FollowedNetwork,
  signal: AbortSignal,
): Promise<void> {
  const { access, nodeName = network.node } = network.orchestrator;
  if (access === undefined) {
    throw new PluginError("config-invalid", "the network config gives no access to the Kubernetes API", {
      details: 'add "kubernetes": {"kubeconfig": …} to it: the endpoints of pods are recorded from there',
    });
  }
  const warn = (message: string) => log(message, "WARNING");
  const client = await means.openKubeClient(access, warn);
  const { elapsed, random, wait } = means.clock;
  const ending = new AbortController();
  const stop = AbortSignal.any([signal, ending.signal]);
  const problems = onceEach(warn);
  const orchestrator = openKubeStore({ api: client, mappings: [podRecords(nodeName)], close: () => client.close() });
  const pods = startReplica(orchestrator, POD_KINDS, {
    peers: () => replica.part(["nodes"]).snapshot?.nodes.size ?? 0,
    signal: stop,
    random,
    clock: { now: elapsed, wait },
    watches: "per kind",
    report: ({ message }) => problems.report(message),
  });
  const requireCluster = refusingAnotherClusterOnce({ store, ...liveObjects(client) });
  const guarded: Pick<Datastore, "commit"> = {
    commit: async (changes) => {
      await requireCluster();
      return store.commit(changes);
    },
  };
  try {
    await followPodEndpoints(pods.updates(stop), replica.part(["endpoints"]).updates(stop), {
      ...{ node: network.node, store: guarded, wait, signal: stop },
      report: problems.report,
      forgetProblems: () => problems.forget(),
    });
  } finally {
    ending.abort();
    await pods.ended;
    await orchestrator.close();
  }
}
