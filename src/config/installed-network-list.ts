/**
 * The network configuration list that an installation puts on a node, before
 * anything is set: our plugin with the documented defaults, then both chained
 * plugins. Whoever removes one of their sections disables it. Pure.
 */
import type { JsonObject } from "../cni/json.ts";
import { identity } from "../identity.ts";
import { INSTALLED_LOG_FILE } from "./schema.ts";

/** Runtimes that know `cniVersions` take the newest they speak, the others `cniVersion`. */
const CNI_VERSION = "1.0.0";
const CNI_VERSIONS = ["1.0.0", "1.1.0"];

export function installedNetworkList(): JsonObject {
  return {
    name: "pods",
    cniVersion: CNI_VERSION,
    cniVersions: CNI_VERSIONS,
    plugins: [
      {
        type: identity.product,
        datastore_type: "etcdv3",
        etcd_endpoints: "http://127.0.0.1:2379",
        log_level: "INFO",
        log_file_path: INSTALLED_LOG_FILE,
        ipam: { type: identity.ipamType },
      },
      { type: "portmap", snat: true, capabilities: { portMappings: true } },
      { type: "bandwidth", capabilities: { bandwidth: true } },
    ],
  };
}
