/**
 * A real API server with its controller manager, and two datastores:
 *
 *   API server ──> its own etcd, with records of this product   the controllers there are left alone
 *              └─> another etcd                                 the controllers there, and the etcd, are killed and paused
 *
 * Both have the same orchestrator and get the same writes of the test, so both must end with the same records.
 */
import { join } from "node:path";
import type { Change, Datastore } from "../../src/datastore/datastore.ts";
import { openDatastore } from "../../src/datastore/open.ts";
import { identity } from "../../src/identity.ts";
import { readAllRecords } from "../../src/ipam/all-records.ts";
import { allocationsIn } from "../../src/ipam/leaks/allocations.ts";
import { clusterInformation } from "../../src/model/cluster-information.ts";
import { parseKey, ROOT_PREFIX, resourcesPrefix } from "../../src/model/keys.ts";
import { CLUSTER_INFORMATION } from "../../src/model/kinds.ts";
import { type EtcdCluster, startEtcd } from "../support/etcd.ts";
import { type ApiServer, startApiServer } from "../support/kube-apiserver.ts";
import { type KubeObjects, openKubeObjects } from "../support/kube-objects.ts";
import { pollUntil } from "../support/poll.ts";

/** A datastore, and what the controllers need in order to use it. */
export interface Place {
  readonly store: Datastore;
  readonly endpoint: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Of its Lease. */
  readonly namespace: string;
}

export interface EtcdSite extends AsyncDisposable {
  readonly server: ApiServer;
  readonly objects: KubeObjects;
  readonly calm: Place;
  readonly disturbed: Place;
  /** Of the disturbed place. */
  readonly etcd: EtcdCluster;
  /** Writes the same to both. */
  put(...changes: readonly Change[]): Promise<void>;
  /** Waits until both places have the same records. */
  untilAlike(what: string): Promise<void>;
}

export async function openEtcdSite(): Promise<EtcdSite> {
  await using undo = new AsyncDisposableStack();
  const etcd = await startEtcd();
  undo.defer(etcd.stop);
  const server = await startApiServer({ with: ["controller-manager"] });
  undo.defer(server.stop);
  const objects = await openKubeObjects(server);
  undo.defer(objects.close);
  const placeAt = async (endpoint: string, namespace: string, kubeconfig: string): Promise<Place> => {
    const store = await openDatastore({ kind: "etcd", source: { kind: "endpoints", endpoints: [endpoint] } });
    undo.defer(() => store.close());
    // Initialized: the first controllers record the cluster, while there is no node yet.
    const value = clusterInformation.write(clusterInformation.make({ name: "default" }, {}));
    await store.commit([{ kind: "put", key: CLUSTER_INFORMATION.key({ name: "default" }), value }]);
    const access = { KUBECONFIG: kubeconfig, DATASTORE_TYPE: "etcdv3", ETCD_ENDPOINTS: endpoint };
    // The ports are the machine's.
    const environment = { ...access, POD_NAMESPACE: namespace, HEALTH_ENABLED: "false" };
    return { store, endpoint, environment, namespace };
  };
  const calm = await placeAt(server.etcdEndpoint, "kube-system", await kubeconfigOfRole(server));
  const disturbed = await placeAt(etcd.endpoints[0] ?? "", "default", server.adminKubeconfig);
  const all = undo.move();
  return {
    server,
    objects,
    calm,
    disturbed,
    etcd,
    async put(...changes) {
      for (const { store } of [calm, disturbed]) await store.commit(changes);
    },
    async untilAlike(what) {
      let [expected, found]: readonly unknown[] = [];
      const areAlike = async () => {
        [expected, found] = await Promise.all([calm, disturbed].map(({ store }) => stateOf(store)));
        return Bun.deepEquals(expected, found);
      };
      await pollUntil(areAlike, what, 60_000).catch((error) => {
        throw new Error(`${error.message}: ${differences(expected, found).join("; ")}`);
      });
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Of the account that the deployed role belongs to, which may do what the role says and nothing else. */
async function kubeconfigOfRole(server: ApiServer): Promise<string> {
  const role = join(import.meta.dir, `../../deploy/rbac/${identity.controllers}-etcd.yaml`);
  await server.apply(await Bun.file(role).text());
  const account = [identity.controllers, "--namespace=kube-system", "--duration=24h"];
  const token = await server.kubectl(["create", "token", ...account]);
  return server.credentials.writeKubeconfig("controllers", { token: token.trim() });
}

type State = Readonly<Record<string, unknown>>;

/** Without the configuration, which names what runs, and without times. Of IPAM: who holds how many addresses, and who has claims. */
async function stateOf(store: Datastore): Promise<State> {
  const { answers } = await store.read([{ kind: "prefix", prefix: ROOT_PREFIX }]);
  const state: Record<string, unknown> = {};
  for (const { key, value } of answers[0] ?? []) {
    const parts = parseKey(key);
    if (parts?.kind !== "resource" || parts.plural === "kubecontrollersconfigurations") continue;
    const { metadata, ...more } = JSON.parse(value);
    const { uid: _, creationTimestamp: __, ...named } = metadata;
    state[key] = { metadata: named, ...more };
  }
  const { blocks, affinities, handles } = await readAllRecords(store);
  for (const { handle, node } of blocks.flatMap(allocationsIn)) {
    const holder = `addresses of ${handle} on ${node}`;
    state[holder] = Number(state[holder] ?? 0) + 1;
  }
  for (const { node } of affinities) state[`claims of ${node}`] = Number(state[`claims of ${node}`] ?? 0) + 1;
  for (const { handleId } of handles) state[`handle ${handleId}`] = true;
  return state;
}

function differences(expected: unknown, found: unknown): readonly string[] {
  const [one, other] = [expected as State, found as State];
  const keys = [...new Set([...Object.keys(one), ...Object.keys(other)])];
  return keys
    .filter((key) => !Bun.deepEquals(one[key], other[key]))
    .map((key) => `${key}: ${JSON.stringify(one[key])} undisturbed, ${JSON.stringify(other[key])} disturbed`);
}

/** `NAMESPACE/NAME` or `NAME` of each record of the kind. */
export async function namesOf(store: Datastore, plural: string): Promise<readonly string[]> {
  const prefix = resourcesPrefix(plural);
  const { answers } = await store.read([{ kind: "prefix", prefix }]);
  return (answers[0] ?? []).map(({ key }) => key.slice(prefix.length));
}

/** As an administrator does whose controllers must not wait: the next process acquires the lease at once. */
export function dropLease({ objects }: EtcdSite, { namespace }: Place): Promise<void> {
  return objects.remove("Lease", { namespace, name: identity.controllers });
}

// biome-ignore lint/suspicious/noExplicitAny: a record has the fields that its test expects.
export async function recordAt(store: Datastore, key: string): Promise<any> {
  const text = (await store.read([{ kind: "key", key }])).answers[0]?.[0]?.value;
  return text === undefined ? undefined : JSON.parse(text);
}
