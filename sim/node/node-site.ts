/** A machine with its datastore and API, for tests of one node. */
import type { Change } from "../../src/datastore/datastore.ts";
import { formatPrefix, parseInterfaceAddress } from "../../src/ip/prefix.ts";
import { clusterInformation } from "../../src/model/cluster-information.ts";
import { HANDLES_PREFIX, resourceKey, resourcesPrefix } from "../../src/model/keys.ts";
import { nodeChange, poolChange, seed } from "../../test/support/ipam.ts";
import { type DatastoreKind, startDatastore } from "../datastore/servers.ts";
import { SimulatedApi } from "../datastore/simulated-api.ts";
import { FaultyNetwork } from "../faults/network.ts";
import { Random } from "../schedule/random.ts";
import { Scheduler } from "../schedule/scheduler.ts";
import type { NetworkOptions } from "./network-config.ts";
import { SimulatedNode } from "./simulated-node.ts";
import type { RuntimePod } from "./simulated-runtime.ts";

export interface SiteOptions {
  readonly seed?: number;
  readonly datastore?: DatastoreKind;
  readonly calls?: "itself" | "server";
  readonly network?: Partial<NetworkOptions>;
}

const NODE = "node-1";
const MACHINE = "0123";

export async function startSite({ seed: number = 1, datastore = "etcd", calls, network: options }: SiteOptions = {}) {
  const random = new Random(number);
  const scheduler = new Scheduler(random.fork("order"));
  const network = new FaultyNetwork(scheduler, random.fork("network"));
  const store = startDatastore(datastore, network);
  const api = store.server instanceof SimulatedApi ? store.server : new SimulatedApi(network);
  api.create("/api/v1/namespaces", { metadata: { name: "shop" } });
  api.create("/api/v1/nodes", {
    metadata: { name: NODE },
    spec: {},
    status: { nodeInfo: { machineID: MACHINE } },
  });
  const pool = poolChange("pool", "10.1.0.0/24", { blockSize: 26 });
  await seed(store.user, pool, readyCluster(), ...(datastore === "orchestrator" ? [] : [nodeChange(NODE)]));
  const address = parseInterfaceAddress("172.18.0.11/24");
  const node = new SimulatedNode({
    ...{ name: NODE, machineId: MACHINE, scheduler, random: random.fork(NODE), gateway: "172.18.0.1" },
    ...(calls === undefined ? {} : { calls }),
    addresses: address === undefined ? [] : [address],
    openStore: (process) => store.connect(process, NODE),
    openApi: (process) => api.connect(process, NODE),
    network: { datastore: datastore === "orchestrator" ? "orchestrator" : "etcd", ...options },
  });
  /** In the orchestrator's API. */
  const createPod = (name: string): RuntimePod => {
    const { metadata } = api.create("/api/v1/namespaces/shop/pods", {
      metadata: { namespace: "shop", name, labels: { app: name } },
      spec: { nodeName: NODE, serviceAccountName: "default", containers: [{ name: "main" }] },
      status: { phase: "Pending" },
    });
    return { namespace: "shop", name, uid: String(metadata?.["uid"]) };
  };
  /** Runs the simulation until the answer is there. */
  const until = async <Answer>(answer: Promise<Answer>): Promise<Answer> => {
    let isOver = false;
    void answer.finally(() => {
      isOver = true;
    });
    await scheduler.runUntil(scheduler.now);
    for (const limit = scheduler.now + 600_000; !isOver && scheduler.now < limit; ) await scheduler.step();
    return answer;
  };
  const pass = (milliseconds: number) => scheduler.runUntil(scheduler.now + milliseconds);
  /** What is there of containers: their links, routes, records and files. */
  const left = (): readonly string[] => {
    const { links, routes } = node.host.root;
    const own = [...links.values()].filter(({ kind }) => kind !== undefined);
    const isOfPod = ({ destination }: (typeof routes)[number]) => /^10\.1\..*\/32$/.test(formatPrefix(destination));
    return [
      ...own.map(({ name }) => `link ${name}`),
      ...routes.filter(isOfPod).map(({ destination }) => `route ${formatPrefix(destination)}`),
      ...store.records.under(HANDLES_PREFIX).map(({ key }) => key),
      ...store.records.under(resourcesPrefix("workloadendpoints")).map(({ key }) => key),
      ...Array.from(node.statusFiles.keys(), (name) => `status ${name}`),
    ];
  };
  return { scheduler, network, store, api, node, createPod, until, pass, left };
}

function readyCluster(): Change {
  const value = clusterInformation.write(clusterInformation.make({ name: "default" }, { datastoreReady: true }));
  return { kind: "put", key: resourceKey("clusterinformations", { name: "default" }), value };
}
