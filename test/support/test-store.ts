/** A datastore on a private host, read and written by the test. */
import { join } from "node:path";
import type { Change, Datastore } from "../../src/datastore/datastore.ts";
import { openDatastore } from "../../src/datastore/open.ts";
import { ROOT_PREFIX } from "../../src/model/keys.ts";
import { startEtcd } from "./etcd.ts";
import { startEtcdOnHost } from "./etcd-on-host.ts";
import type { Host } from "./host.ts";
import { relayIntoNetns } from "./tcp-relay.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

export type StoreKind = "embedded" | "etcd";
/** With the API, every container is a pod of it. */
export type AnyStoreKind = StoreKind | "kubernetes";

export interface TestStore {
  readonly kind: AnyStoreKind;
  /** The fields of the network config that select it. */
  readonly config: Readonly<Record<string, unknown>>;
  put(changes: readonly Change[]): Promise<void>;
  remove(key: string): Promise<void>;
  /** All records of the product. */
  list(): Promise<ReadonlyMap<string, string>>;
  /** Creates a pod in the API; returns the CNI arguments that name it. */
  podArguments?(): Promise<string>;
  close(): Promise<void>;
}

export async function openTestStore(host: Host, kind: StoreKind): Promise<TestStore> {
  return kind === "embedded" ? openEmbeddedStore() : openEtcdStore(host);
}

async function openEmbeddedStore(): Promise<TestStore> {
  // Not in a directory private to the host: SQLite could not open it from outside.
  const directory = temporaryDirectory("plugin-store");
  const path = join(directory.path, "store.db");
  const store = await openDatastore({ kind: "embedded", path });
  return {
    kind: "embedded",
    config: { datastore_type: "embedded", datastore_path: path },
    ...accessOf(store),
    close: async () => {
      await store.close();
      directory.remove();
    },
  };
}

function accessOf(store: Datastore): Pick<TestStore, "put" | "remove" | "list"> {
  return {
    put: async (changes) => void (await store.commit(changes)),
    remove: async (key) => {
      const { answers } = await store.read([{ kind: "key", key }]);
      const revision = answers[0]?.[0]?.revision ?? "";
      await store.commit([{ kind: "delete", key, revision }]);
    },
    list: async () => {
      const { answers } = await store.read([{ kind: "prefix", prefix: ROOT_PREFIX }]);
      return new Map((answers[0] ?? []).map(({ key, value }) => [key, value]));
    },
  };
}

/** Its config opens it in the test itself too. */
export async function openReadableStore(host: Host, kind: StoreKind): Promise<TestStore> {
  return kind === "embedded" ? openEmbeddedStore() : openRelayedEtcdStore(host);
}

/** On this machine's loopback, and at the same address in the host's network. */
async function openRelayedEtcdStore(host: Host): Promise<TestStore> {
  const etcd = await startEtcd();
  const [endpoint = ""] = etcd.endpoints;
  const relay = await relayIntoNetns(host.netns, Number(new URL(endpoint).port));
  const store = await openEtcdStoreAt(endpoint);
  return {
    ...store,
    close: async () => {
      await store.close();
      relay[Symbol.dispose]();
      await etcd.stop();
    },
  };
}

/** An etcd that the host can reach under the same endpoint as the test. */
export async function openEtcdStoreAt(endpoint: string): Promise<TestStore> {
  const store = await openDatastore({ kind: "etcd", source: { kind: "endpoints", endpoints: [endpoint] } });
  return { kind: "etcd", config: { etcd_endpoints: endpoint }, ...accessOf(store), close: () => store.close() };
}

/** With etcd's own tool: it is only reachable in the host's network. */
async function openEtcdStore(host: Host): Promise<TestStore> {
  const endpoint = await startEtcdOnHost(host);
  const etcdctl = (args: readonly string[], stdin?: string) =>
    host.must(["etcdctl", `--endpoints=${endpoint}`, ...args], {
      environment: { ETCDCTL_API: "3" },
      ...(stdin === undefined ? {} : { stdin }),
    });
  return {
    kind: "etcd",
    config: { etcd_endpoints: endpoint },
    put: async (changes) => {
      for (const change of changes) if (change.kind === "put") await etcdctl(["put", change.key], change.value);
    },
    remove: async (key) => void (await etcdctl(["del", key])),
    list: async () => {
      const { kvs = [] } = JSON.parse(await etcdctl(["get", "--prefix", ROOT_PREFIX, "--write-out=json"])) as {
        kvs?: { key: string; value: string }[];
      };
      return new Map(kvs.map(({ key, value }) => [atob(key), atob(value)]));
    },
    close: async () => {},
  };
}
