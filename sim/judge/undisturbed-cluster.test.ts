/** A cluster in which nothing fails satisfies every invariant, and one kernel that differs violates them. */
import { describe, expect, test } from "bun:test";
import type { Change } from "../../src/datastore/datastore.ts";
import { parseInterfaceAddress } from "../../src/ip/prefix.ts";
import { clusterInformation } from "../../src/model/cluster-information.ts";
import type { IPPoolSpec } from "../../src/model/ip-pool.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { NODE } from "../../src/model/kinds.ts";
import { hashMachineId, MACHINE_ANNOTATION } from "../../src/model/machine-annotation.ts";
import { withOrchestratorReference } from "../../src/model/node-reference.ts";
import { poolChange, seed } from "../../test/support/ipam.ts";
import { SimulatedControllers } from "../control/simulated-controllers.ts";
import { type DatastoreKind, startDatastore } from "../datastore/servers.ts";
import { SimulatedApi } from "../datastore/simulated-api.ts";
import { FaultyNetwork } from "../faults/network.ts";
import { SimulatedNode } from "../node/simulated-node.ts";
import { Random } from "../schedule/random.ts";
import { Scheduler } from "../schedule/scheduler.ts";
import { allInvariants } from "./all.ts";
import { violationsIn, type World, type WorldPod } from "./invariant.ts";

const SUBNETS = ["172.18.1", "172.18.1", "172.18.2"];

async function startCluster(datastore: DatastoreKind, pool: Partial<IPPoolSpec>) {
  const random = new Random(1);
  const scheduler = new Scheduler(random.fork("order"));
  const network = new FaultyNetwork(scheduler, random.fork("network"));
  const store = startDatastore(datastore, network);
  const api = store.server instanceof SimulatedApi ? store.server : new SimulatedApi(network);
  api.create("/api/v1/namespaces", { metadata: { name: "shop" } });
  api.create("/api/v1/namespaces/shop/serviceaccounts", { metadata: { namespace: "shop", name: "default" } });
  await seed(store.user, poolChange("pool", "10.1.0.0/24", { blockSize: 29, ...pool }), readyCluster());
  const isEtcd = datastore !== "orchestrator";
  new SimulatedControllers({
    ...{ name: "controllers-1", scheduler, random: random.fork("controllers"), isEtcd },
    openStore: (process) => store.connect(process, "controllers-1"),
    openApi: (process) => api.connect(process, "controllers-1"),
  }).start();
  const nodes = SUBNETS.map((subnet, index) => {
    const name = `node-${index + 1}`;
    const annotations = { [MACHINE_ANNOTATION]: hashMachineId(`machine-of-${name}`) };
    api.create("/api/v1/nodes", { metadata: { name, annotations }, spec: {} });
    const record = NODE.codec.make({ name, annotations }, withOrchestratorReference({}, name));
    if (isEtcd) void store.user.commit([{ kind: "put", key: NODE.key({ name }), value: NODE.codec.write(record) }]);
    const address = parseInterfaceAddress(`${subnet}.1${index}/24`);
    const node = new SimulatedNode({
      ...{ name, scheduler, random: random.fork(name), gateway: `${subnet}.1` },
      addresses: address === undefined ? [] : [address],
      openStore: (process) => store.connect(process, name),
      openApi: (process) => api.connect(process, name),
      network: { datastore: isEtcd ? "etcd" : "orchestrator", policy: "required" },
    });
    node.startAgent();
    return { node, subnet };
  });
  const pods = new Map<string, WorldPod>();
  const pass = (milliseconds: number) => scheduler.runUntil(scheduler.now + milliseconds);
  await pass(20_000);
  for (const [index, { node }] of [...nodes, ...nodes].entries()) {
    const name = `pod-${index}`;
    const { metadata } = api.create("/api/v1/namespaces/shop/pods", {
      metadata: { namespace: "shop", name, labels: { app: index % 2 === 0 ? "open" : "closed" } },
      spec: { nodeName: node.name, serviceAccountName: "default", containers: [{ name: "main" }] },
      status: { phase: "Pending" },
    });
    const pod = { namespace: "shop", name, uid: String(metadata?.["uid"]) };
    pods.set(`shop/${name}`, { ...pod, node: node.name, isEnding: false });
    void node.runtime.add(pod, `container-${index}`).then((added) => {
      if (!added.ok) throw new Error(added.reason);
      const podIPs = added.addresses.map((ip) => ({ ip }));
      api.patch(`/api/v1/namespaces/shop/pods/${name}`, { status: { phase: "Running", podIP: podIPs[0]?.ip, podIPs } });
    });
    await pass(1_000);
  }
  const world: World = {
    get now() {
      return scheduler.now;
    },
    records: store.records,
    pods,
    nodes: new Map(
      nodes.map(({ node, subnet }) => {
        const { name, host, attachments, statusFiles } = node;
        const kernel = { root: host.root, namespaceAt: (path: string) => host.namespaceAt(path), statusFiles };
        return [name, { name, isRegistered: true, attachments, host: { ...kernel, segment: subnet } }];
      }),
    ),
  };
  return { api, world, nodes: nodes.map(({ node }) => node), pass };
}

function readyCluster(): Change {
  const value = clusterInformation.write(clusterInformation.make({ name: "default" }, { datastoreReady: true }));
  return { kind: "put", key: resourceKey("clusterinformations", { name: "default" }), value };
}

const CLUSTERS = [
  ["etcd", { vxlanMode: "Always" }],
  ["etcd", { ipipMode: "CrossSubnet" }],
  ["orchestrator", { vxlanMode: "CrossSubnet" }],
  ["orchestrator", { ipipMode: "Always" }],
] as const;

describe("a cluster in which nothing fails", () => {
  test.each(CLUSTERS)("satisfies every invariant, on datastore %s with %p", async (datastore, mode) => {
    const { world, pass, api, nodes } = await startCluster(datastore, mode);
    await pass(60_000);
    expect(violationsIn(world, allInvariants())).toEqual([]);
    api.create("/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies", {
      metadata: { namespace: "shop", name: "only-open" },
      spec: {
        podSelector: { matchLabels: { app: "closed" } },
        ingress: [
          { from: [{ podSelector: { matchLabels: { app: "open" } } }], ports: [{ protocol: "TCP", port: 80 }] },
        ],
      },
    });
    await pass(60_000);
    expect(violationsIn(world, allInvariants())).toEqual([]);
    expect(nodes.flatMap(({ logged }) => logged).filter((line) => /refused|Cannot/.test(line))).toEqual([]);
    nodes[0]?.host.root.nftables.tables.clear();
    expect(JSON.stringify(violationsIn(world, allInvariants()))).toContain("arrives, but must not");
  });
});
