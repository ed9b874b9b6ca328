/**
 * The orchestrator's API as the datastore of a private host: a real API server on
 * this machine's loopback, reachable at the same address on the host. The plugin has
 * its own role; the test reads and writes as the administrator.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openDatastore } from "../../src/datastore/open.ts";
import { identity } from "../../src/identity.ts";
import { openKubeClient } from "../../src/kube/client.ts";
import { requireOk } from "../../src/kube/require-ok.ts";
import { ROOT_PREFIX } from "../../src/model/keys.ts";
import type { Host } from "./host.ts";
import { type ApiServer, startApiServer } from "./kube-apiserver.ts";
import { installCrds } from "./kube-crds.ts";
import type { TestStore } from "./test-store.ts";

const NAMESPACE = "pods";

export async function openKubeTestStore(host: Host, node: string): Promise<TestStore> {
  await using undo = new AsyncDisposableStack();
  const server = await startApiServer();
  undo.defer(server.stop);
  undo.use(await server.relayInto(host.netns));
  const { kubeconfig } = await prepare(server, node);
  const access = { kubeconfigs: [server.adminKubeconfig] };
  const store = await openDatastore({ kind: "orchestrator", access });
  undo.defer(() => store.close());
  const admin = await openKubeClient(access, {
    environment: {},
    warn: () => {},
    now: () => new Date(),
    elapsed: () => performance.now(),
  });
  undo.defer(() => admin.close());

  let pods = 0;
  const all = undo.move();
  return {
    kind: "kubernetes",
    config: { datastore_type: "kubernetes", kubernetes: { kubeconfig } },
    put: async (changes) => void (await store.commit(changes)),
    async remove(key) {
      const { answers } = await store.read([{ kind: "key", key }]);
      await store.commit([{ kind: "delete", key, revision: answers[0]?.[0]?.revision ?? "" }]);
    },
    async list() {
      const { answers } = await store.read([{ kind: "prefix", prefix: ROOT_PREFIX }]);
      return new Map((answers[0] ?? []).map(({ key, value }) => [key, value]));
    },
    async podArguments() {
      pods += 1;
      const metadata = { name: `pod-${pods}`, namespace: NAMESPACE };
      const spec = { nodeName: node, containers: [{ name: "main", image: "none" }] };
      const body = JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata, spec });
      const request = { method: "POST", path: `/api/v1/namespaces/${NAMESPACE}/pods`, body } as const;
      const created = JSON.parse(requireOk(await admin.request(request), request));
      return `K8S_POD_NAMESPACE=${NAMESPACE};K8S_POD_NAME=${metadata.name};K8S_POD_UID=${created.metadata.uid}`;
    },
    close: () => all.disposeAsync(),
  };
}

/** Our resources, the plugin's role, a node, and a namespace for pods. */
async function prepare(server: ApiServer, node: string) {
  await installCrds(server);
  await server.apply(readFileSync(join(import.meta.dir, "../../deploy/rbac/vendor-kubernetes.yaml"), "utf8"));
  await server.createNamespace(NAMESPACE);
  await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: node } }));
  return server.serviceAccount({ name: identity.product, clusterRole: `${identity.product}-kubernetes` });
}
