/**
 * A datastore on etcd and the kubeconfig of another cluster, which has none of its pods, and nodes of the same names on other
 * machines: nothing is released or deleted.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { CONFIGURATION_KEY } from "../../src/controllers/configuration.ts";
import { REMOVALS_ALLOWED_UNTIL } from "../../src/controllers/removals.ts";
import type { Datastore } from "../../src/datastore/datastore.ts";
import { openDatastore } from "../../src/datastore/open.ts";
import { identity } from "../../src/identity.ts";
import { readAllRecords } from "../../src/ipam/all-records.ts";
import { openAllocator } from "../../src/ipam/allocator.ts";
import { clusterInformation } from "../../src/model/cluster-information.ts";
import { CLUSTER_INFORMATION, NETWORK_POLICY, NODE } from "../../src/model/kinds.ts";
import { convertPolicy } from "../../src/model/orchestrator-policy.ts";
import { roleName } from "../../src/release/roles/role-files.ts";
import { type Controllers, startControllers } from "../support/controllers.ts";
import { means, podRequest, poolChange, seed } from "../support/ipam.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { recordAt } from "./etcd-site.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);
const NODES = ["node-1", "node-2", "node-3"];
const [THEIRS, PODS] = ["node-1", 20];
const POLICY_KEY = NETWORK_POLICY.key({ namespace: "red", name: "knp.default.deny" });
const NODE_KEY = NODE.key({ name: THEIRS });

let server: ApiServer;
let store: Datastore;
let controllers: Controllers;
let environment: Readonly<Record<string, string>>;

beforeAll(async () => {
  if (problem !== undefined) return;
  server = await startApiServer();
  const role = `../../deploy/rbac/${roleName("controllers-etcd", identity)}.yaml`;
  await server.apply(await Bun.file(join(import.meta.dir, role)).text());
  for (const [index, name] of NODES.entries()) await joinNode(name, `172.20.0.${index + 1}`);
  store = await openDatastore({ kind: "etcd", source: { kind: "endpoints", endpoints: [server.etcdEndpoint] } });
  // As an earlier release has registered them: without a machine.
  const nodes = NODES.map((nodeName, index) => {
    const bgp = { ipv4Address: `172.19.0.${index + 1}/24` };
    return NODE.codec.make({ name: nodeName }, { bgp, orchRefs: [{ nodeName, orchestrator: "k8s" }] });
  });
  const information = clusterInformation.make({ name: "default" }, { datastoreReady: true });
  const policy = convertPolicy({ metadata: { namespace: "red", name: "deny" }, spec: { podSelector: {} } });
  await seed(
    store,
    poolChange("blue", "10.7.0.0/24", { blockSize: 26 }),
    poolChange("green", "fd07::/120", { blockSize: 122 }),
    { kind: "put", key: CLUSTER_INFORMATION.key({ name: "default" }), value: clusterInformation.write(information) },
    ...nodes.map(({ metadata: { name }, ...node }) => ({
      ...{ kind: "put" as const, key: NODE.key({ name }), value: NODE.codec.write({ metadata: { name }, ...node }) },
    })),
    { kind: "put", key: POLICY_KEY, value: NETWORK_POLICY.codec.write(policy) },
  );
  const allocator = openAllocator(store, means({ now: () => new Date(Date.now() - 3_600_000) }));
  for (let pod = 0; pod < PODS; pod += 1)
    await allocator.assign(podRequest(`p${pod}`, { pod: `p${pod}`, node: THEIRS }));
  const account = await server.serviceAccount({ name: identity.controllers });
  environment = { DATASTORE_TYPE: "etcdv3", ETCD_ENDPOINTS: server.etcdEndpoint };
  controllers = startControllers({ ...environment, KUBECONFIG: account.kubeconfig });
}, 120_000);
afterAll(async () => {
  await controllers?.kill();
  await store?.close();
  await server?.stop();
});

/** As its kubelet registers it. */
async function joinNode(name: string, address: string): Promise<void> {
  await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name } }));
  const status = { addresses: [{ type: "InternalIP", address }], nodeInfo: { machineID: `machine of ${address}` } };
  await server.kubectl(["patch", "node", name, "--subresource=status", `--patch=${JSON.stringify({ status })}`]);
}

const handles = async () => (await readAllRecords(store)).handles.length;
const admin = async (...words: readonly string[]) => {
  const child = Bun.spawn([builtProgram(identity.adminTool), ...words, "--kubeconfig", server.adminKubeconfig], {
    env: { PATH: process.env["PATH"] ?? "", ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { code: await child.exited, stdout, stderr };
};

describe("with the kubeconfig of another cluster", () => {
  testServer("vendorctl ipam gc --cluster releases nothing, and fails", async () => {
    const { code, stderr } = await admin("ipam", "gc", "--cluster");

    expect({ code, handles: await handles() }).toEqual({ code: 1, handles: PODS });
    expect(stderr).toContain("Cannot compare the datastore with this cluster");
    expect(stderr).toContain("datastore adopt-cluster");
  });

  testServer("the controllers delete no copy, node or address", async () => {
    await controllers.untilLogged("Cannot compare the datastore with this cluster");

    expect(await recordAt(store, POLICY_KEY)).toBeDefined();
    expect(await recordAt(store, NODE_KEY)).toBeDefined();
    expect(await handles()).toBe(PODS);
    expect(controllers.log()).not.toContain("deleted");
  });

  testServer(
    "an administrator can confirm the move; then nodes with most addresses are held, and released with another word",
    async () => {
      await server.kubectl(["delete", "nodes", "--all"]);
      const shown = await admin("datastore", "adopt-cluster");
      expect({ code: shown.code, stdout: shown.stdout }).toEqual({
        code: 1,
        stdout: expect.stringContaining("Nodes: 3 in the datastore, 0 in the cluster, 0 nodes in both"),
      });
      expect((await admin("datastore", "adopt-cluster", "--yes")).code).toBe(0);
      const uid = await server.kubectl(["get", "namespace", "kube-system", "--output=jsonpath={.metadata.uid}"]);
      expect((await recordAt(store, CLUSTER_INFORMATION.key({ name: "default" }))).spec.kubeSystemUID).toBe(uid);

      await pollUntil(async () => (await recordAt(store, POLICY_KEY)) === undefined, "the deletion of the copy");
      const addresses = `${2 * PODS} of ${2 * PODS} addresses`;
      await controllers.untilLogged(`${addresses} are not removed yet`);
      await controllers.untilLogged(
        `3 of 3 records of controller node, and with them ${addresses}, are not removed yet`,
      );
      for (const name of NODES) expect(await recordAt(store, NODE.key({ name }))).toBeDefined();
      expect(await handles()).toBe(PODS);

      const { metadata, ...configuration } = await recordAt(store, CONFIGURATION_KEY);
      const annotations = { [REMOVALS_ALLOWED_UNTIL]: new Date(Date.now() + 60_000).toISOString() };
      const allowed = JSON.stringify({ ...configuration, metadata: { ...metadata, annotations } });
      await seed(store, { kind: "put", key: CONFIGURATION_KEY, value: allowed });
      await pollUntil(async () => (await recordAt(store, NODE_KEY)) === undefined, "the deletion of the node");
      await pollUntil(async () => (await handles()) === 0, "the release of the addresses");
    },
    60_000,
  );
});
