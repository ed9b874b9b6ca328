/**
 * Who is attached: every name and number of one attachment that follows from
 * the call alone. Pure; the same call gives the same workload, at ADD, CHECK
 * and DEL alike.
 */
import type { CniArguments } from "../cni/arguments.ts";
import type { NetworkConfig } from "../config/network-config.ts";
import { PluginError } from "../errors.ts";
import { resourceKey } from "../model/keys.ts";
import { workloadEndpointName } from "../model/workload-endpoint-name.ts";
import { hostInterfaceName } from "./host-interface.ts";
import { formatMark } from "./link-mark.ts";

export interface Attached {
  readonly networkName: string;
  readonly containerId: string;
  readonly ifname: string;
}

export interface Workload {
  readonly network: string;
  readonly containerId: string;
  readonly ifname: string;
  readonly node: string;
  /** `k8s` when the runtime named a pod, else `cni`. */
  readonly orchestrator: "k8s" | "cni";
  readonly namespace: string;
  readonly pod?: string;
  /** Under what the allocator knows its addresses. */
  readonly handle: string;
  readonly endpointName: string;
  readonly endpointKey: string;
  readonly hostInterface: string;
  /** The host link's alias: whose it is. */
  readonly mark: string;
  /** The container's MAC: ours to choose, since the endpoint is recorded before the link exists. */
  readonly mac: Uint8Array;
}

/** Where workloads without a pod are recorded. */
const OTHER_NAMESPACE = "default";

export function workloadOf(attached: Attached, args: CniArguments, node: string): Workload {
  const { networkName: network, containerId, ifname } = attached;
  const pod = podOf(args);
  const orchestrator = pod === undefined ? "cni" : "k8s";
  const namespace = pod?.namespace ?? OTHER_NAMESPACE;
  const named = workloadEndpointName({ node, orchestrator, workload: pod?.name ?? containerId, endpoint: ifname });
  if (!named.ok) {
    throw new PluginError("environment-invalid", `Cannot name the endpoint: its ${named.field}: ${named.reason}`);
  }
  const mark = formatMark({ network, containerId, ifname });
  return {
    network,
    containerId,
    ifname,
    node,
    orchestrator,
    namespace,
    ...(pod === undefined ? {} : { pod: pod.name }),
    handle: `${network}.${containerId}`,
    endpointName: named.name,
    endpointKey: resourceKey("workloadendpoints", { namespace, name: named.name }),
    hostInterface: hostInterfaceName({ containerId, ifname, pod }),
    mark,
    mac: derivedMac(mark),
  };
}

/** The annotation that `ip_addrs_no_ipam` honours is a pod's: without a pod nothing could ever come of it. */
export function requirePodFor({ ipAddrsNoIpam }: NetworkConfig["features"], { pod }: Workload): void {
  if (!ipAddrsNoIpam || pod !== undefined) return;
  const field = '"feature_control.ip_addrs_no_ipam"';
  throw new PluginError(
    "config-invalid",
    `Cannot use ${field}: the call has no pod (CNI_ARGS without K8S_POD_NAMESPACE and K8S_POD_NAME)`,
    { details: `remove ${field} from the network config, or set it to false` },
  );
}

/** A pod has both; one without the other names nobody. */
function podOf(args: CniArguments): { readonly namespace: string; readonly name: string } | undefined {
  const { podNamespace, podName } = args;
  return podNamespace === undefined || podName === undefined ? undefined : { namespace: podNamespace, name: podName };
}

/** Locally administered, unicast; a second ADD of the same attachment gives the same. */
function derivedMac(mark: string): Uint8Array {
  // Half the time of a CryptoHasher in a process that has just begun.
  const hash = new Uint8Array(32);
  Bun.SHA256.hash(mark, hash);
  const mac = new Uint8Array(6);
  mac.set(hash.subarray(0, 6));
  mac[0] = ((mac[0] ?? 0) & 0xfc) | 0x02;
  return mac;
}
