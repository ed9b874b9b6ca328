/**
 * A private host with the built plugin, a datastore and a real API server. Pods
 * exist in the API only, assigned to the host's node: the test is their kubelet. The
 * plugin has the role that is deployed for its datastore, no other rights.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Change } from "../../src/datastore/datastore.ts";
import { identity } from "../../src/identity.ts";
import { hostProblem } from "./host.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "./kube-apiserver.ts";
import { type Json, openPluginSite, type PluginSite, type Pod } from "./plugin-site.ts";
import type { StoreKind } from "./test-store.ts";

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
  /** The options of a call with access to the API, with further fields of the config. */
  options(more?: Json): { readonly config: Json };
  /** Creates a pod in the API, and a namespace for its container. */
  makePod(plan?: KubePodPlan): Promise<KubePod>;
  /** Another sandbox of the same pod. */
  makeSandbox(pod: KubePod): Promise<KubePod>;
}

/** Where pods are created unless they say otherwise. */
const NAMESPACE = "shop";

export function kubeSiteProblem(): string | undefined {
  return hostProblem() ?? apiServerProblem();
}

export async function openKubeSite(kind: StoreKind, seed: readonly Change[]): Promise<KubeSite> {
  await using undo = new AsyncDisposableStack();
  const site = undo.use(await openPluginSite(kind, seed));
  const server = await startApiServer({ place: { netns: site.host.netns, address: "127.0.0.1" } });
  undo.defer(() => server.stop());
  const role = join(import.meta.dir, `../../deploy/rbac/${identity.product}-etcd.yaml`);
  await server.apply(readFileSync(role, "utf8"));
  const { kubeconfig, user } = await server.serviceAccount({ name: identity.product });
  await server.createNamespace(NAMESPACE);
  let pods = 0;

  const sandboxOf = async (namespace: string, name: string, uid: string): Promise<KubePod> => {
    const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=${namespace};K8S_POD_NAME=${name};K8S_POD_UID=${uid}`;
    return { ...(await site.makePod({ args })), namespace, name, uid };
  };
  const all = undo.move();
  return {
    site,
    server,
    user,
    kubeconfig,
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
      return sandboxOf(namespace, made.name, made.uid);
    },
    makeSandbox: ({ namespace, name, uid }) => sandboxOf(namespace, name, uid),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
