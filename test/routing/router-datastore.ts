/** A real datastore on the router, which all nodes reach: an etcd that can be killed, or the orchestrator's API. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { DatastoreSettings } from "../../src/config/datastore-settings.ts";
import { identity } from "../../src/identity.ts";
import type { RoleDatastore } from "../../src/release/roles/role-files.ts";
import { fetchFromHost } from "../support/connectivity.ts";
import { etcdCommand } from "../support/etcd-on-host.ts";
import type { Host } from "../support/host.ts";
import { startApiServer } from "../support/kube-apiserver.ts";
import { installCrds } from "../support/kube-crds.ts";
import { ROUTER_ADDRESS } from "./routed-network.ts";

export interface RouterDatastore extends AsyncDisposable {
  /** The fields of the network config that select it. */
  readonly config: Readonly<Record<string, unknown>>;
  /** The same for the admin tool. */
  readonly environment: Readonly<Record<string, string>>;
  /** The same for a program in the router's network. */
  readonly settings: DatastoreSettings;
  /** Creates a node, if it is not a resource of the product. */
  addNode?(name: string, labels: Readonly<Record<string, string>>): Promise<void>;
  /** Creates a pod, without which there is no ADD. */
  addPod?(name: string, node: string, metadata?: PodMetadata): Promise<void>;
  /** Deletes it, so that one of the same name may be on another node. */
  removePod?(name: string): Promise<void>;
}

/** What made the pod, and what its author says of it. */
export interface PodMetadata {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly object[];
}

export const POD_NAMESPACE = "routed";

export interface RouterEtcd extends RouterDatastore {
  /** At once; its data stay. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

export interface RouterApi extends RouterDatastore {
  kubectl(args: readonly string[], stdin?: string): Promise<string>;
}

const PORT = 2379;

export async function startRouterEtcd(router: Host): Promise<RouterEtcd> {
  const endpoint = `http://${ROUTER_ADDRESS}:${PORT}`;
  const pidFile = `${router.directory}/etcd.pid`;
  const command = etcdCommand(`${router.directory}/etcd`, endpoint);
  const start = async () => {
    router.start(["sh", "-c", `echo $$ > ${pidFile}; exec "$@"`, "sh", ...command], "etcd.log");
    await fetchFromHost(router, ROUTER_ADDRESS, PORT, "/health");
  };
  await start();
  return {
    config: { etcd_endpoints: endpoint },
    environment: { DATASTORE_TYPE: "etcdv3", ETCD_ENDPOINTS: endpoint },
    settings: { kind: "etcd", source: { kind: "endpoints", endpoints: [endpoint] } },
    start,
    kill: async () => void (await router.must(["kill", "-KILL", readFileSync(router.view(pidFile), "utf8").trim()])),
    // It ends with the router.
    [Symbol.asyncDispose]: async () => {},
  };
}

/** `roles`: of the account that plugin and agent share. */
export async function startRouterApi(
  router: Host,
  roles: readonly RoleDatastore[] = ["kubernetes", "node-kubernetes"],
): Promise<RouterApi> {
  const server = await startApiServer({ place: { netns: router.netns, address: ROUTER_ADDRESS } });
  await installCrds(server);
  for (const role of roles) {
    const file = join(import.meta.dir, `../../deploy/rbac/${identity.product}-${role}.yaml`);
    await server.kubectl(["apply", `--filename=${file}`]);
  }
  await server.createNamespace(POD_NAMESPACE);
  const { kubeconfig } = await server.serviceAccount({ name: identity.product });
  return {
    config: { datastore_type: "kubernetes", kubernetes: { kubeconfig } },
    environment: { DATASTORE_TYPE: "kubernetes", KUBECONFIG: server.adminKubeconfig },
    settings: { kind: "orchestrator", access: { kubeconfigs: [server.adminKubeconfig] } },
    kubectl: server.kubectl,
    addNode: (name, labels) =>
      server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name, labels } })),
    addPod(name, nodeName, more) {
      const metadata = { name, namespace: POD_NAMESPACE, ...more };
      const spec = { nodeName, containers: [{ name: "main", image: "none" }] };
      return server.apply(JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata, spec }));
    },
    removePod: async (name) =>
      void (await server.kubectl([
        "delete",
        "pod",
        name,
        `--namespace=${POD_NAMESPACE}`,
        "--force",
        "--grace-period=0",
      ])),
    [Symbol.asyncDispose]: server.stop,
  };
}
