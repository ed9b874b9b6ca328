/**
 * The attachment as the allocator knows it, with the names of its endpoint and
 * links and its MAC. Derived only from the call, so ADD, CHECK and DEL agree. Pure.
 */
import { type CniArguments, containerNameOf, podOf } from "../cni/arguments.ts";
import type { DatastoreSettings } from "../config/datastore-settings.ts";
import { policyAccessProblem } from "../config/kube-access.ts";
import type { NetworkConfig } from "../config/network-config.ts";
import { PluginError } from "../errors.ts";
import { type Attached, type Attachment, attachmentOf } from "../ipam/attachment.ts";
import { formatMark } from "../ipam/link-mark.ts";
import { hostInterfaceName } from "../model/host-interface-name.ts";
import { resourceKey } from "../model/keys.ts";
import { LONGEST_NAME } from "../model/longest-name.ts";
import { workloadEndpointName } from "../model/workload-endpoint-name.ts";
import { quoted } from "../quote.ts";

export interface Workload extends Attachment {
  readonly ifname: string;
  /** `k8s` if the call has a pod, else `cni`. */
  readonly orchestrator: "k8s" | "cni";
  readonly namespace: string;
  readonly pod?: string;
  /**
   * What the runtime calls the container at ADD, if it is not a pod. Not its identity, since a name may be used again: for
   * people, and for a ContainerLabels, which is about whatever container has the name.
   */
  readonly containerName?: string;
  readonly endpointName: string;
  readonly endpointKey: string;
  readonly hostInterface: string;
  /** The host link's alias, which identifies its owner. */
  readonly mark: string;
  /** The container's MAC, requested or derived: chosen here, since the endpoint is recorded before the link exists. */
  readonly mac: Uint8Array;
  /** Those of the endpoint before the container was connected again (kept-labels.ts); absent: those of the config. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** The namespace in which workloads without a pod are recorded. */
const OTHER_NAMESPACE = "default";

export function workloadOf(
  attached: Attached & { readonly ifname: string },
  args: CniArguments,
  node: string,
  requestedMac?: Uint8Array,
): Workload {
  const { ifname } = attached;
  const attachment = attachmentOf(attached, { node, ifname });
  const { network, containerId } = attachment;
  const pod = podOf(args);
  const containerName = containerNameOf(args);
  const orchestrator = pod === undefined ? "cni" : "k8s";
  const namespace = pod?.namespace ?? OTHER_NAMESPACE;
  const named = workloadEndpointName({ node, orchestrator, workload: pod?.name ?? containerId, endpoint: ifname });
  if (!named.ok) {
    throw new PluginError("environment-invalid", `Cannot name the endpoint: its ${named.field}: ${named.reason}`);
  }
  const mark = formatMark({ network, containerId, ifname });
  return {
    ...attachment,
    ifname,
    orchestrator,
    namespace,
    ...(pod === undefined ? {} : { pod: pod.name }),
    ...(containerName === undefined ? {} : { containerName }),
    endpointName: named.name,
    endpointKey: resourceKey("workloadendpoints", { namespace, name: named.name }),
    hostInterface: hostInterfaceName({ containerId, ifname, pod }),
    mark,
    mac: requestedMac ?? derivedMac(mark),
  };
}

/** For the log. */
export function podFields({ namespace, pod }: Workload): { readonly pod?: string } {
  return pod === undefined ? {} : { pod: `${namespace}/${pod}` };
}

/**
 * The names of the pod are parts of the endpoint's key, which a slash would divide. Only ADD checks them: a DEL of
 * what was never added succeeds.
 */
export function requireUsableNames({ namespace, pod = "" }: Workload): void {
  const names = { K8S_POD_NAMESPACE: namespace, K8S_POD_NAME: pod };
  for (const [key, name] of Object.entries(names)) {
    if (name.length <= LONGEST_NAME && !name.includes("/")) continue;
    const rule = `at most ${LONGEST_NAME} characters are allowed, and no slash`;
    throw new PluginError("environment-invalid", `Cannot use CNI_ARGS: ${key} is ${quoted(name)}: ${rule}`);
  }
}

/** `ip_addrs_no_ipam` uses an annotation of the pod: without a pod it could not have an effect. */
export function requirePodFor({ ipAddrsNoIpam }: NetworkConfig["features"], { pod }: Workload): void {
  if (!ipAddrsNoIpam || pod !== undefined) return;
  const field = '"feature_control.ip_addrs_no_ipam"';
  throw new PluginError(
    "config-invalid",
    `Cannot use ${field}: the call has no pod (CNI_ARGS without K8S_POD_NAMESPACE and K8S_POD_NAME)`,
    { details: `remove ${field} from the network config, or set it to false` },
  );
}

/** The endpoint of the pod would have no labels and no profiles. */
export function requireAccessFor(config: NetworkConfig, { namespace, pod }: Workload): void {
  const problem = pod === undefined ? undefined : policyAccessProblem(config);
  if (problem === undefined) return;
  throw new PluginError("config-invalid", `Cannot attach pod "${namespace}/${pod}": ${problem.message}`);
}

/** In the orchestrator's API an endpoint is a pod: that of another container could not be recorded. */
export function requirePodIn({ kind }: Pick<DatastoreSettings, "kind">, { pod, containerId }: Workload): void {
  if (kind !== "orchestrator" || pod !== undefined) return;
  throw new PluginError(
    "config-invalid",
    `Cannot attach container ${quoted(containerId)}: it has no pod, and "datastore_type" is "${kind}": an endpoint is a pod in the Kubernetes API`,
    { details: 'set "datastore_type" to "etcdv3" or "embedded" for containers without a pod' },
  );
}

/** Locally administered, unicast; the same for every ADD of the attachment. */
function derivedMac(mark: string): Uint8Array {
  // Takes half the time of a CryptoHasher in a new process.
  const hash = new Uint8Array(32);
  Bun.SHA256.hash(mark, hash);
  const mac = new Uint8Array(6);
  mac.set(hash.subarray(0, 6));
  mac[0] = ((mac[0] ?? 0) & 0xfc) | 0x02;
  return mac;
}
