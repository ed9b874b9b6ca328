/** Real kubelets force-delete and evict pods, and a node is lost: afterwards IPAM is consistent, and running pods have their addresses. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { type Controllers, startControllers } from "../support/controllers.ts";
import { addressesOf } from "../support/kube-pods.ts";
import { NODE_NAME, openProductCluster, type ProductCluster, productClusterProblem } from "../support/kube-product.ts";
import { testNeeding } from "../support/needs.ts";
import { NAMESPACE, podsOn } from "../support/pods-in-namespace.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";

const problem = productClusterProblem() ?? proofSize({ everyDay: "only in `make soak`", soak: undefined });
const testCluster = testNeeding(problem);
const LOST = "node-2";

let cluster: ProductCluster;
let controllers: Controllers;
beforeAll(async () => {
  if (problem !== undefined) return;
  cluster = await openProductCluster({ datastore: "etcd", families: "dual stack", calls: "by themselves" });
  const { server, host } = cluster;
  controllers = startControllers(
    { KUBECONFIG: server.adminKubeconfig, DATASTORE_TYPE: "etcdv3", ETCD_ENDPOINTS: server.etcdEndpoint },
    ["nsenter", `--net=${host.netns}`, "--"],
  );
  await server.createNamespace(NAMESPACE);
  await controllers.untilLogged("created the configuration");
  const patch = { spec: { controllers: { node: { leakGracePeriod: "10s" } } } };
  await cluster.admin("patch", "kubecontrollersconfiguration", "default", `--patch=${JSON.stringify(patch)}`);
}, 300_000);
afterAll(async () => {
  await controllers?.kill();
  await cluster?.[Symbol.asyncDispose]();
});

describe("pods that end without a DEL", () => {
  testCluster(
    "keep no address, and pods that run keep theirs",
    async () => {
      const { server, admin } = cluster;
      const lost = await cluster.addNode(LOST);
      const pods = podsOn(server);
      const on = (nodeName: string, ...names: readonly string[]) =>
        names.map((name) => ({ name, spec: { nodeName }, shutdownSeconds: 20 }));
      await pods.create(...on(NODE_NAME, "kept", "forced", "evicted"), ...on(LOST, "lost", "lost-too"));
      const all = await pods.allReady(5);
      expect(new Set(all.flatMap(addressesOf)).size).toBe(10);

      await server.kubectl(["delete", "pod", "forced", `--namespace=${NAMESPACE}`, "--force", "--grace-period=0"]);
      const eviction = {
        apiVersion: "policy/v1",
        kind: "Eviction",
        metadata: { name: "evicted", namespace: NAMESPACE },
      };
      const path = `/api/v1/namespaces/${NAMESPACE}/pods/evicted/eviction`;
      await server.kubectl(["create", "--raw", path, "--filename=-"], JSON.stringify(eviction));
      await lost.kubelet.kill();
      await lost.containerd.kill();
      await server.kubectl(["delete", "node", LOST]);

      // Until the controller manager deletes them, the API says that the pods of the lost node have their addresses.
      const isClean = async () => (await admin("ipam", "check", "--no-grace")).includes(": no problems");
      const holders = async () =>
        (await admin("get", "workloadendpoints", "--all-namespaces")).trim().split("\n").slice(1);
      await pollUntil(async () => (await holders()).length === 1 && (await isClean()), "only one endpoint", 180_000);
      const [kept] = all.filter(({ metadata }) => metadata.name === "kept");
      for (const address of kept === undefined ? [] : addressesOf(kept))
        expect(await admin("ipam", "show", `--ip=${address}`)).toContain("kept");
      expect(await pods.exec("kept", "/agnhost", "connect", "127.0.0.1:80")).toBe("");
    },
    580_000,
  );
});
