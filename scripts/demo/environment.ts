/** A private host with the built programs, a datastore with two pools, and a runtime that drives the plugin. */
import { readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { BANDWIDTH_ENTRY, portmapEntry } from "../../src/config/installed-network-list.ts";
import { identity } from "../../src/identity.ts";
import { startEtcdOnHost } from "../../test/support/etcd-on-host.ts";
import { type Finished, type Host, openHost } from "../../test/support/host.ts";
import { type Runtime, startRuntime } from "../../test/support/runtime-driver.ts";
import type { StoreKind } from "../../test/support/test-store.ts";
import type { StepResult } from "./output.ts";
import { PROGRAMS } from "./requirements.ts";

export interface DemoEnvironment extends StepResult {
  readonly host: Host;
  readonly store: StoreKind;
  readonly runtime: Runtime;
  /** Runs the admin tool on the demo's datastore; throws if it fails. */
  admin(args: readonly string[], stdin?: string): Promise<string>;
  tryAdmin(args: readonly string[], stdin?: string): Promise<Finished>;
  close(): Promise<void>;
}

export const NETWORK = "demo";
export const NODE = "demo-node";
/** The version that current runtimes support; they do not call GC, so the demo's own runtime does. */
export const RUNTIME_VERSION = "1.0.0";
export const PLUGIN_DIRECTORY = "/opt/cni/bin";

export async function openEnvironment(store: StoreKind): Promise<DemoEnvironment> {
  const host = await openHost();
  for (const file of readdirSync(PROGRAMS)) {
    symlinkSync(join(PROGRAMS, file), host.view(join(PLUGIN_DIRECTORY, file)));
  }
  const datastore = DATASTORES[store];
  const environment = await datastore.start(host);
  const list = networkList(RUNTIME_VERSION, datastore.config);
  host.writeFile(`/etc/cni/net.d/10-${NETWORK}.conflist`, JSON.stringify(list));
  const runtime = startRuntime({
    conflist: networkList("1.1.0", datastore.config),
    pluginDirectory: PLUGIN_DIRECTORY,
    run: host.run,
  });
  const command = (args: readonly string[]) => [join(PLUGIN_DIRECTORY, identity.adminTool), ...args];
  const options = (stdin?: string) => ({ environment, ...(stdin === undefined ? {} : { stdin }) });
  return {
    host,
    store,
    runtime,
    admin: (args, stdin) => host.must(command(args), options(stdin)),
    tryAdmin: (args, stdin) => host.run(command(args), options(stdin)),
    close: async () => host[Symbol.asyncDispose](),
    summary: "with its own network, mounts and processes",
  };
}

interface DemoDatastore {
  /** The fields of the network config that select it. */
  readonly config: Readonly<Record<string, string>>;
  /** Starts it and returns the environment variables that select it for the admin tool. */
  start(host: Host): Promise<Readonly<Record<string, string>>>;
}

const DATASTORES: Readonly<Record<StoreKind, DemoDatastore>> = {
  embedded: {
    config: { datastore_type: "embedded" },
    start: async () => ({ DATASTORE_TYPE: "embedded" }),
  },
  etcd: {
    config: { datastore_type: "etcdv3", etcd_endpoints: "http://127.0.0.1:2379" },
    start: async (host) => ({ DATASTORE_TYPE: "etcdv3", ETCD_ENDPOINTS: await startEtcdOnHost(host) }),
  },
};

function networkList(cniVersion: string, datastore: Readonly<Record<string, string>>) {
  const ipam = { type: identity.ipamType, assign_ipv4: "true", assign_ipv6: "true" };
  return {
    cniVersion,
    name: NETWORK,
    plugins: [
      { type: identity.product, nodename: NODE, log_level: "ERROR", ...datastore, ipam },
      portmapEntry(true),
      BANDWIDTH_ENTRY,
    ],
  };
}
