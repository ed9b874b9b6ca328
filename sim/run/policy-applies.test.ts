/** What users ask of the orchestrator reaches the kernels: a packet that a policy denies is dropped, on each datastore. */
import { expect, test } from "bun:test";
import { parseAddress } from "../../src/ip/address.ts";
import { DATASTORES, type DatastoreKind } from "../datastore/servers.ts";
import { livingAttachments } from "../judge/invariant.ts";
import { kernelRules } from "../judge/packets/kernel-rules.ts";
import { walk } from "../judge/packets/walk.ts";
import type { Action, Script } from "../script/operation.ts";
import { Cluster } from "./cluster.ts";
import { playOperation } from "./play-operation.ts";

const BEFORE: readonly Action[] = [
  { kind: "apply namespace", name: "red", labels: { team: "one" } },
  { kind: "create pod", namespace: "red", name: "web", node: "node-1", labels: { app: "web" } },
  { kind: "create pod", namespace: "red", name: "db", node: "node-2", labels: { app: "db" } },
];
const DENY: Action = {
  ...{ kind: "apply policy", namespace: "red", name: "closed" },
  spec: { podSelector: { matchLabels: { app: "db" } }, policyTypes: ["Ingress"] },
};
const MINUTE = 60_000;

test.each([...DATASTORES])("an applied policy denies a packet on datastore %s", async (datastore) => {
  const cluster = new Cluster(scriptOn(datastore));
  const play = async (actions: readonly Action[]) => {
    for (const action of actions) await playOperation(cluster, action);
    await cluster.scheduler.runUntil(cluster.now + MINUTE);
  };
  await cluster.start();
  await play([]);
  await play(BEFORE);
  expect(packetEnds(cluster)).toBe("delivered");
  await play([DENY]);
  expect(packetEnds(cluster)).toBe("dropped");
  await play([{ kind: "delete policy", namespace: "red", name: "closed" }]);

  expect(packetEnds(cluster)).toBe("delivered");
});

/** A packet from the first pod to the second. */
function packetEnds(cluster: Cluster): string {
  const machines = [...cluster.nodes.values()].flatMap(({ name, host }) =>
    host === undefined ? [] : [{ name, root: host.root, segment: host.segment }],
  );
  const stations = new Map(
    livingAttachments(cluster).map(({ pod, node, netnsPath, addresses }) => [
      pod.name,
      {
        machine: machines.find(({ name }) => name === node),
        namespace: cluster.nodes.get(node)?.host?.namespaceAt(netnsPath ?? ""),
        address: parseAddress(addresses[0] ?? ""),
      },
    ]),
  );
  const [web, db] = [stations.get("web"), stations.get("db")];
  if (!web?.machine || !web.namespace || !web.address || !db?.address) return "there are no pods";
  const packet = { source: web.address, destination: db.address, protocol: 6, sourcePort: 40_000, destinationPort: 80 };
  return walk({ machines, enter: kernelRules }, { machine: web.machine, namespace: web.namespace, packet }).end;
}

function scriptOn(datastore: DatastoreKind): Script {
  return {
    ...{ seed: 1, datastore, flavour: "realistic", subnets: 1, policySetupSeconds: 0, calls: "itself" },
    ...{ nodes: ["node-1", "node-2"], operations: [] },
    pools: [{ name: "pool-1", cidr: "10.10.0.0/25", blockSize: 28, encapsulation: "VXLAN" }],
  };
}
