/** The network config of a simulated cluster, as an installation writes it. */
import type { JsonObject } from "../../src/cni/json.ts";
import { NETWORK_CONFIG_DIRECTORY } from "../../src/config/installed-network-list.ts";
import { identity } from "../../src/identity.ts";

export interface NetworkOptions {
  readonly datastore: "etcd" | "orchestrator";
  readonly node: string;
  /** Pods get rules before they start, or none: absent, policy is only enforced where there is one. */
  readonly policy?: "required";
  /** How long an ADD waits for the rules of its pod. */
  readonly policySetupSeconds?: number;
  readonly more?: JsonObject;
}

const API = "https://api.simulated:6443";

export const NETWORK_NAME = "pod-network";
export const NETWORK_FILE = `${NETWORK_CONFIG_DIRECTORY}/10-${identity.product}.conflist`;

/** The only plugin of its list. */
export function networkList(options: NetworkOptions): string {
  const { datastore, node, policy, policySetupSeconds = 0, more = {} } = options;
  const store =
    datastore === "etcd"
      ? { datastore_type: "etcdv3", etcd_endpoints: "https://etcd.simulated:2379" }
      : { datastore_type: "kubernetes" };
  const plugin = {
    type: identity.product,
    ...store,
    nodename: node,
    log_level: "ERROR",
    ipam: { type: identity.ipamType },
    kubernetes: { k8s_api_root: API },
    ...(policy === undefined ? {} : { policy: { type: "k8s" } }),
    ...(policySetupSeconds === 0 ? {} : { policy_setup_timeout_seconds: policySetupSeconds }),
    ...more,
  };
  return JSON.stringify({ cniVersion: "1.1.0", name: NETWORK_NAME, plugins: [plugin] });
}
