/** Opens the datastore that an Installation names, for the operator. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DatastoreSettings } from "../config/datastore-settings.ts";
import { ETCD_SECRET_KEYS } from "../config/etcd-secret-keys.ts";
import type { Datastore } from "../datastore/datastore.ts";
import { productMapping } from "../datastore/kube/product-mapping.ts";
import { openKubeStore } from "../datastore/kube/store.ts";
import { openDatastoreToFollow } from "../datastore/open.ts";
import { identity } from "../identity.ts";
import type { KubeClient } from "../kube/api.ts";
import type { InstallationDatastore } from "../release/installation/effective-installation.ts";
import type { OpenPlace } from "./follow-records.ts";

export interface DatastoreOptions {
  readonly client: KubeClient;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly warn: (message: string) => void;
  /** Marks a write, so that it is recognized; by default a random UUID. */
  readonly newMark?: () => string;
}

export function openInstallationDatastore(options: DatastoreOptions): OpenPlace {
  return async ({ datastore, files }) => {
    if (datastore.type === "Etcd") return openEtcd(datastore, files, options);
    const mappings = productMapping(options.newMark ?? (() => crypto.randomUUID()));
    // The connection is the operator's own.
    return openKubeStore({ api: options.client, mappings, close: async () => {} });
  };
}

type Etcd = Extract<InstallationDatastore, { readonly type: "Etcd" }>;

/** Certificates are read from files, which are removed when the datastore is closed. */
async function openEtcd(
  { endpoints, discoveryDomain: domain }: Etcd,
  files: Readonly<Record<string, string>>,
  { environment, warn }: DatastoreOptions,
): Promise<Datastore> {
  const directory = mkdtempSync(join(tmpdir(), `${identity.operator}-etcd-`));
  const fileOf = (key: string) => {
    const text = files[key];
    if (text === undefined) return undefined;
    const path = join(directory, key);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  const caCertFile = fileOf(ETCD_SECRET_KEYS.caCert);
  const certFile = fileOf(ETCD_SECRET_KEYS.cert);
  const keyFile = fileOf(ETCD_SECRET_KEYS.key);
  const settings: DatastoreSettings = {
    kind: "etcd",
    source:
      domain === undefined ? { kind: "endpoints", endpoints: endpoints.split(",") } : { kind: "discovery", domain },
    ...(caCertFile === undefined ? {} : { caCertFile }),
    ...(certFile === undefined ? {} : { certFile }),
    ...(keyFile === undefined ? {} : { keyFile }),
  };
  try {
    const store = await openDatastoreToFollow(settings, { environment, warn });
    return closingWith(store, () => rmSync(directory, { recursive: true, force: true }));
  } catch (failure) {
    rmSync(directory, { recursive: true, force: true });
    throw failure;
  }
}

function closingWith(store: Datastore, clean: () => void): Datastore {
  const close = async () => {
    await store.close();
    clean();
  };
  return {
    atomicity: store.atomicity,
    read: (wanted, at) => store.read(wanted, at),
    commit: (changes) => store.commit(changes),
    transact: (wanted, decide) => store.transact(wanted, decide),
    clock: () => store.clock?.(),
    watch: (prefix, from, signal) => store.watch(prefix, from, signal),
    close,
  };
}
