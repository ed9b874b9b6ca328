/** Follows the addresses of the orchestrator's Services, if the network config gives access to its API. */

import type { KubeAccess } from "../../config/kube-access.ts";
import { SERVICE_ADDRESS_RECORDS } from "../../datastore/kube/service-records.ts";
import { openKubeStore } from "../../datastore/kube/store.ts";
import { spreadOver } from "../../datastore/replica/clock.ts";
import type { KindTable } from "../../datastore/replica/kinds.ts";
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import { startReplica } from "../../datastore/replica.ts";
import {
  readServiceAddresses,
  SERVICE_ADDRESSES_PREFIX,
  type ServiceAddresses,
} from "../../model/service-addresses.ts";
import { aborted } from "../../timers.ts";
import type { FollowedNetwork } from "../network/followed-network.ts";

type Means = Pick<FollowedNetwork, "means" | "network" | "replica"> & { readonly report: (message: string) => void };

const RETRY_MILLISECONDS = 10_000;

interface Values {
  readonly services: ServiceAddresses;
}

const KINDS: KindTable<Values> = {
  services: { prefix: SERVICE_ADDRESSES_PREFIX, decode: ({ key, value }) => readServiceAddresses(value, key) },
};

/** Until the signal is aborted. Without the API connections to Services have no names, and everything else goes on. */
export async function followServices(
  given: Means,
  take: (change: RecordChange<ServiceAddresses>) => void,
  stop: AbortSignal,
): Promise<void> {
  const { means, network, replica, report } = given;
  const { random, wait } = means.clock;
  const { access } = network.orchestrator;
  if (access === undefined) return aborted(stop);
  const peers = () => replica.part(["nodes"]).snapshot?.nodes.size ?? 0;
  // Flows are switched on for all nodes at the same moment.
  await wait(random() * spreadOver(peers(), "lists"), stop);
  while (!stop.aborted) {
    try {
      await followOnce(given, { access, peers, take }, stop);
    } catch (failure) {
      report(`Cannot read Services: ${failure instanceof Error ? failure.message : String(failure)}`);
      await wait(RETRY_MILLISECONDS, stop);
    }
  }
}

async function followOnce(
  { means, report }: Means,
  {
    access,
    peers,
    take,
  }: {
    readonly access: KubeAccess;
    readonly peers: () => number;
    readonly take: (change: RecordChange<ServiceAddresses>) => void;
  },
  stop: AbortSignal,
): Promise<void> {
  const { elapsed, wait, random } = means.clock;
  const client = await means.openKubeClient(access, report);
  const store = openKubeStore({ api: client, mappings: [SERVICE_ADDRESS_RECORDS], close: () => client.close() });
  const ending = new AbortController();
  const signal = AbortSignal.any([stop, ending.signal]);
  const services = startReplica(store, KINDS, {
    ...{ signal, random, peers, clock: { now: elapsed, wait }, watches: "per kind" },
    report: ({ message }) => report(`Cannot read Services: ${message}`),
  });
  try {
    for await (const { changes } of services.updates(signal)) for (const change of changes.services) take(change);
  } finally {
    ending.abort();
    await services.ended;
    await store.close();
  }
}
