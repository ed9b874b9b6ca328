/**
 * A host with one datastore and the built IPAM plugin: calls of a runtime, and our
 * own connection to the datastore to check the outcome.
 */
import { join } from "node:path";
import type { Change, Datastore } from "../../src/datastore/datastore.ts";
import { openDatastore } from "../../src/datastore/open.ts";
import { identity } from "../../src/identity.ts";
import { readAllRecords } from "../../src/ipam/all-records.ts";
import { findProblems, type IpamRecords, type Problem } from "../../src/ipam/invariants.ts";
import { clusterInformation } from "../../src/model/cluster-information.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { type EtcdCluster, hasEtcd, startEtcd } from "./etcd.ts";
import { seed } from "./ipam.ts";
import { builtProgram } from "./run-plugin.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

export interface IpamSite {
  /** The network config; `more` adds fields to it. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly store: Datastore;
  /** The first endpoint of etcd, if the datastore is etcd. */
  readonly endpoint?: string;
  readonly environment: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** Each datastore that the plugin supports, and why it cannot be tested here. */
export const IPAM_SITES = [
  { name: "embedded", missing: undefined, start: startEmbeddedSite },
  { name: "etcd", missing: hasEtcd ? undefined : "no etcd", start: startEtcdSite },
] as const;

export const PLUGIN = builtProgram(identity.ipamType);

async function startEmbeddedSite(...changes: readonly Change[]): Promise<IpamSite> {
  const directory = temporaryDirectory("ipam");
  const path = join(directory.path, "store.db");
  const store = await openDatastore({ kind: "embedded", path });
  await seed(store, ...changes);
  return {
    config: networkConfig({ datastore_type: "embedded", datastore_path: path }),
    store,
    environment: environmentIn(directory.path),
    stop: async () => {
      await store.close();
      directory.remove();
    },
  };
}

async function startEtcdSite(...changes: readonly Change[]): Promise<IpamSite> {
  return openEtcdSite(await startEtcd(), ...changes);
}

/** The cluster ends with the site. */
export async function openEtcdSite(etcd: EtcdCluster, ...changes: readonly Change[]): Promise<IpamSite> {
  const directory = temporaryDirectory("ipam");
  const store = await openDatastore({ kind: "etcd", source: { kind: "endpoints", endpoints: etcd.endpoints } });
  await seed(store, readyCluster(true), ...changes);
  return {
    config: networkConfig({ etcd_endpoints: etcd.endpoints.join(",") }),
    store,
    endpoint: etcd.endpoints[0] ?? "",
    environment: environmentIn(directory.path),
    stop: async () => {
      await store.close();
      await etcd.stop();
      directory.remove();
    },
  };
}

export function readyCluster(datastoreReady: boolean): Change {
  const value = clusterInformation.write(clusterInformation.make({ name: "default" }, { datastoreReady }));
  return { kind: "put", key: resourceKey("clusterinformations", { name: "default" }), value };
}

export async function judge(
  site: IpamSite,
): Promise<{ readonly world: IpamRecords; readonly problems: readonly Problem[] }> {
  const world = await readAllRecords(site.store);
  return { world, problems: findProblems(world) };
}

function networkConfig(datastore: Readonly<Record<string, unknown>>) {
  return {
    cniVersion: "1.1.0",
    name: "net",
    type: identity.product,
    nodename: "node-1",
    log_level: "ERROR",
    ipam: { type: identity.ipamType },
    ...datastore,
  };
}

function environmentIn(directory: string) {
  return { [`${identity.environmentPrefix}RUN_DIRECTORY`]: join(directory, "run") };
}
