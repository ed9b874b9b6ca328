/**
 * The network configuration lists of an installation: our plugin with the
 * documented defaults, then both chained plugins. Removing the section of a chained
 * plugin disables it. Pure.
 */
import type { JsonObject } from "../cni/json.ts";
import { type Identity, identity } from "../identity.ts";
import { POD_ANNOTATIONS } from "./capabilities.ts";

/** Where container runtimes, podman among them, read network configs by default. */
export const NETWORK_CONFIG_DIRECTORY = "/etc/cni/net.d";

/** Runtimes that support `cniVersions` use the newest one they support, the others `cniVersion`. */
export const CNI_VERSION = "1.0.0";
export const CNI_VERSIONS = ["1.0.0", "1.1.0"];

/** The name of the network, which podman's `--network` takes. */
const NETWORK_NAME = "pods";

/** The datastores that a list is installed for, with the fields that select each. */
const DATASTORES = {
  etcd: { datastore_type: "etcdv3", etcd_endpoints: "http://127.0.0.1:2379" },
  embedded: { datastore_type: "embedded" },
} as const;

/** A config without `log_file_path` logs to no file, so every installed one carries it. */
export const INSTALLED_LOG_FILE = logFileOf(identity);

function logFileOf({ logDirectory }: Identity): string {
  return `${logDirectory}/cni/cni.log`;
}

/** `snat`: clients whose replies would not come back through this host are masqueraded. */
export function portmapEntry(snat: boolean): JsonObject {
  return { type: "portmap", snat, capabilities: { portMappings: true } };
}

/** Runtimes read only the orchestrator's own spelling of the annotations; the other reaches the plugin as it is. */
export const BANDWIDTH_ENTRY: JsonObject = {
  type: "bandwidth",
  capabilities: { bandwidth: true, [POD_ANNOTATIONS]: true },
};

export type InstalledDatastore = keyof typeof DATASTORES;

export function installedNetworkList(datastore: InstalledDatastore, names: Identity): JsonObject {
  return {
    name: NETWORK_NAME,
    cniVersion: CNI_VERSION,
    cniVersions: CNI_VERSIONS,
    plugins: [
      {
        type: names.product,
        ...DATASTORES[datastore],
        log_level: "INFO",
        log_file_path: logFileOf(names),
        ipam: { type: names.ipamType },
        capabilities: { ips: true, mac: true },
      },
      portmapEntry(true),
      BANDWIDTH_ENTRY,
    ],
  };
}

/** Their file names: what is in a runtime's folder of network configs is read in the order of the names. */
export function installedListName(datastore: InstalledDatastore, { product }: Identity): string {
  return datastore === "etcd" ? `10-${product}.conflist` : `10-${product}-${datastore}.conflist`;
}
