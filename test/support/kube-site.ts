/**
 * A private host with the built plugin, a datastore and a real API server, which may
 * be the datastore. Pods exist in the API only, assigned to the host's node: the
 * test is their kubelet. The plugin has the role that is deployed for its datastore,
 * no other rights.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Change } from "../../src/datastore/datastore.ts";
import { openDatastore } from "../../src/datastore/open.ts";
import { identity } from "../../src/identity.ts";
import { blocksPrefix, HANDLES_PREFIX, parseKey, resourcesPrefix } from "../../src/model/keys.ts";
import { hasEtcd } from "./etcd.ts";
import { hostProblem } from "./host.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "./kube-apiserver.ts";
import { installCrds } from "./kube-crds.ts";
import { type Json, openPluginSite, type PluginSite, type Pod } from "./plugin-site.ts";
import type { TestStore } from "./test-store.ts";

export interface KubePodPlan {
  readonly namespace?: string;
  readonly name?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly metadata?: Json;
  readonly spec?: Json;
}

export interface KubePod extends Pod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export interface KubeSite extends AsyncDisposable {
  readonly site: PluginSite;
  readonly server: ApiServer;
  /** The plugin's name in the audit log. */
  readonly user: string;
  readonly kubeconfig: string;
  /** What makes the admin tool use the datastore, as its administrator. */
  readonly adminEnvironment: Readonly<Record<string, string>>;
  /** The options of a call with access to the API, with further fields of the config. */
  options(more?: Json): { readonly config: Json };
  /** Creates a pod in the API, and a namespace for its container. */
  makePod(plan?: KubePodPlan): Promise<KubePod>;
}

/** With etcd as the datastore, or with the API itself. */
export type KubeSiteStore = "etcd" | "orchestrator";

export const KUBE_SITE_STORES: readonly { readonly kind: KubeSiteStore; readonly problem: string | undefined }[] = [
  { kind: "etcd", problem: kubeSiteProblem() ?? (hasEtcd ? undefined : "needs the program etcd") },
  { kind: "orchestrator", problem: kubeSiteProblem() },
];

/** Where pods are created unless they say otherwise. */
const NAMESPACE = "shop";

function kubeSiteProblem(): string | undefined {
  return hostProblem() ?? apiServerProblem();
}

export async function openKubeSite(kind: KubeSiteStore, seed: readonly Change[]): Promise<KubeSite> {
  await using undo = new AsyncDisposableStack();
  const server = await startApiServer();
  undo.defer(() => server.stop());
  const { kubeconfig, user } = await openAccess(server, kind);
  const site = undo.use(
    kind === "etcd"
      ? await openPluginSite("etcd", seed)
      : await openPluginSite(() => openApiStore(server, kubeconfig), seed.filter(isStoredInApi)),
  );
  undo.use(await server.relayInto(site.host.netns));
  let pods = 0;

  const all = undo.move();
  return {
    site,
    server,
    user,
    kubeconfig,
    adminEnvironment:
      kind === "etcd"
        ? { ETCD_ENDPOINTS: String(site.store.config["etcd_endpoints"]) }
        : { DATASTORE_TYPE: "kubernetes", KUBECONFIG: server.adminKubeconfig },
    options: (more = {}) => ({ config: site.config({ kubernetes: { kubeconfig }, ...more }) }),
    async makePod({ namespace = NAMESPACE, name, annotations = {}, labels = {}, metadata = {}, spec = {} } = {}) {
      pods += 1;
      const object = {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: name ?? `pod-${pods}`, namespace, annotations, labels, ...metadata },
        spec: { nodeName: "node-1", containers: [{ name: "main", image: "none" }], ...spec },
      };
      const created = await server.kubectl(["create", "--filename=-", "--output=json"], JSON.stringify(object));
      const made = (JSON.parse(created) as { metadata: { name: string; uid: string } }).metadata;
      const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=${namespace};K8S_POD_NAME=${made.name};K8S_POD_UID=${made.uid}`;
      return { ...(await site.makePod({ args })), namespace, name: made.name, uid: made.uid };
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** The deployed role, a user who has it, the node, and a namespace for pods. */
async function openAccess(server: ApiServer, kind: KubeSiteStore) {
  const role = `${identity.product}-${kind === "etcd" ? "etcd" : "kubernetes"}`;
  await server.apply(readFileSync(join(import.meta.dir, `../../deploy/rbac/${role}.yaml`), "utf8"));
  await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: "node-1" } }));
  await server.createNamespace(NAMESPACE);
  if (kind === "orchestrator") await installCrds(server);
  return server.serviceAccount({ name: identity.product });
}

/** Nodes are the cluster's own. */
function isStoredInApi({ key }: Change): boolean {
  const parts = parseKey(key);
  return parts?.kind !== "resource" || parts.plural !== "nodes";
}

async function openApiStore(server: ApiServer, kubeconfig: string): Promise<TestStore> {
  const store = await openDatastore({ kind: "orchestrator", access: { kubeconfigs: [server.adminKubeconfig] } });
  const prefixes = [resourcesPrefix("workloadendpoints"), HANDLES_PREFIX, blocksPrefix(4), blocksPrefix(6)];
  return {
    kind: "kubernetes",
    config: { datastore_type: "kubernetes", kubernetes: { kubeconfig } },
    put: async (changes) => {
      for (const change of changes) await store.commit([change]);
    },
    remove: async (key) => {
      const { answers } = await store.read([{ kind: "key", key }]);
      await store.commit([{ kind: "delete", key, revision: answers[0]?.[0]?.revision ?? "" }]);
    },
    list: async () => {
      const { answers } = await store.read(prefixes.map((prefix) => ({ kind: "prefix", prefix })));
      return new Map(answers.flat().map(({ key, value }) => [key, value]));
    },
    close: () => store.close(),
  };
}
