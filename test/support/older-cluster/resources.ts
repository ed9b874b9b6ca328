/**
 * What a cluster of an earlier release has stored as `crd.vendor.org/v1`: pools, blocks with the addresses of running pods and
 * tunnels, handles, claims, policies, settings. Written from what is known of those releases, and apart from the product's
 * own code.
 */
import { apiVersionOf, identity } from "../../../src/identity.ts";
import type { ClusterObjects } from "../../../src/kube/objects.ts";
import { FORMER_API } from "../../../src/upgrade/former-names.ts";
import { pollUntil } from "../poll.ts";
import type { AnyObject } from "./former-object.ts";

export interface FormerPod {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  readonly address: string;
  readonly container: string;
}

/** Node "two" borrows an address from the block of node "one", and has one in the block of a node that was deleted. */
export const FORMER_PODS: readonly FormerPod[] = [
  { namespace: "shop", name: "web-0", node: "one", address: "192.168.10.1", container: "aaaa1111" },
  { namespace: "shop", name: "web-1", node: "one", address: "192.168.10.5", container: "bbbb2222" },
  { namespace: "shop", name: "db-0", node: "two", address: "192.168.77.66", container: "cccc3333" },
  { namespace: "kube-system", name: "dns-0", node: "two", address: "192.168.10.9", container: "dddd4444" },
  { namespace: "shop", name: "queue-0", node: "two", address: "192.168.200.3", container: "eeee5555" },
];
/** Of the nodes' IP-in-IP tunnels. */
export const FORMER_TUNNELS = { one: "192.168.10.0", two: "192.168.77.64" } as const;
const FORMER_NETWORK = "k8s-pod-network";

interface FormerResource {
  readonly plural: string;
  readonly object: AnyObject;
}

const { labelPrefix, product } = identity;
/** Stands for that of the Deployment that owns a policy, which is not known before it exists. */
export const FORMER_OWNER_UID = "11111111-1111-4111-8111-111111111111";
/** About the time in nanoseconds, as these releases count. */
const SEQUENCE = 1_690_000_000_123_456_789n;

/** `release`: earlier ones than v3.23 had no sequence numbers. */
export function formerResources({
  release = "v3.26.1",
}: {
  readonly release?: string;
} = {}): readonly FormerResource[] {
  const isNumbered = release >= "v3.23";
  return [
    resource("clusterinformations", "ClusterInformation", "default", {
      clusterGUID: "0123456789abcdef0123456789abcdef",
      clusterType: "k8s,bgp,kubeadm",
      [`${product}Version`]: release,
      datastoreReady: true,
    }),
    ...ipam(isNumbered),
    ...pools(),
    ...settings(),
    ...policies(),
    ...hosts(),
    ...routing(),
  ];
}

function ipam(isNumbered: boolean): readonly FormerResource[] {
  return [
    bare("ipamconfigs", "IPAMConfig", "default", {
      strictAffinity: false,
      autoAllocateBlocks: true,
      maxBlocksPerHost: 4,
    }),
    block("192.168.10.0/26", "one", isNumbered),
    block("192.168.77.64/26", "two", isNumbered),
    block("192.168.200.0/26", undefined, isNumbered),
    ...(["one", "two"] as const).map((node) => {
      const cidr = node === "one" ? "192.168.10.0/26" : "192.168.77.64/26";
      const spec = { state: "confirmed", node, cidr, deleted: "false" };
      return bare("blockaffinities", "BlockAffinity", `${node}-${cidr.replaceAll(/[./]/g, "-")}`, spec);
    }),
    ...owners().map(({ handle, cidr }) =>
      bare("ipamhandles", "IPAMHandle", handle.toLowerCase(), {
        handleID: handle,
        block: { [cidr]: 1 },
        deleted: false,
      }),
    ),
  ];
}

interface Owner {
  readonly handle: string;
  readonly cidr: string;
  readonly address: string;
  readonly secondary: Readonly<Record<string, string>>;
}

function owners(): readonly Owner[] {
  return [
    ...Object.entries(FORMER_TUNNELS).map(([node, address]) => ({
      handle: `ipip-tunnel-addr-${node}`,
      cidr: blockOf(address),
      address,
      secondary: { node, type: "ipipTunnelAddress" },
    })),
    ...FORMER_PODS.map(({ namespace, name, node, address, container }) => ({
      handle: `${FORMER_NETWORK}.${container}`,
      cidr: blockOf(address),
      address,
      secondary: { namespace, node, pod: name, timestamp: "2023-07-22 04:26:40.123456789 +0000 UTC" },
    })),
  ];
}

/** Of 64 addresses. */
function blockOf(address: string): string {
  const [a, b, c, last = "0"] = address.split(".");
  return `${a}.${b}.${c}.${Number(last) & 192}/26`;
}

function block(cidr: string, node: string | undefined, isNumbered: boolean): FormerResource {
  const used = owners().filter((owner) => owner.cidr === cidr);
  const ordinals = used.map(({ address }) => Number(address.split(".")[3]) & 63);
  const allocations = Array.from({ length: 64 }, (_, ordinal) => {
    const index = ordinals.indexOf(ordinal);
    return index < 0 ? null : index;
  });
  // The address that was freed last is the last to be assigned again.
  const free = allocations.flatMap((index, ordinal) => (index === null ? ordinal : []));
  const numbers = {
    sequenceNumber: SEQUENCE + BigInt(used.length),
    sequenceNumberForAllocation: Object.fromEntries(
      ordinals.map((ordinal, index) => [ordinal, SEQUENCE + BigInt(index)]),
    ),
  };
  return bare("ipamblocks", "IPAMBlock", cidr.replaceAll(/[./]/g, "-"), {
    cidr,
    affinity: node === undefined ? null : `host:${node}`,
    strictAffinity: false,
    allocations,
    unallocated: [...free.slice(3), ...free.slice(0, 3)],
    attributes: used.map(({ handle, secondary }) => ({ handle_id: handle, secondary })),
    deleted: false,
    ...(isNumbered ? numbers : {}),
  });
}

function pools(): readonly FormerResource[] {
  return [
    resource("ippools", "IPPool", "default-ipv4-ippool", {
      cidr: "192.168.0.0/16",
      blockSize: 26,
      ipipMode: "Always",
      vxlanMode: "Never",
      natOutgoing: true,
      nodeSelector: "all()",
      allowedUses: ["Workload", "Tunnel"],
    }),
    resource("ipreservations", "IPReservation", "gateways", { reservedCIDRs: ["192.168.10.2/32"] }),
  ];
}

function settings(): readonly FormerResource[] {
  return [
    resource("felixconfigurations", "FelixConfiguration", "default", {
      bpfLogLevel: "",
      floatingIPs: "Disabled",
      healthPort: 9098,
      iptablesRefreshInterval: "60s",
      defaultEndpointToHostAction: "RETURN",
      failsafeInboundHostPorts: [{ protocol: "tcp", port: 2222 }],
      logSeverityScreen: "Info",
      reportingInterval: "0s",
    }),
    resource("felixconfigurations", "FelixConfiguration", "node.two", { prometheusMetricsEnabled: true }),
    resource("kubecontrollersconfigurations", "KubeControllersConfiguration", "default", {
      controllers: {
        node: {
          hostEndpoint: { autoCreate: "Disabled" },
          leakGracePeriod: "15m0s",
          reconcilerPeriod: "5m0s",
          syncLabels: "Enabled",
        },
        policy: { reconcilerPeriod: "5m0s" },
      },
      healthChecks: "Enabled",
      etcdV3CompactionPeriod: "10m0s",
      logSeverityScreen: "Info",
      prometheusMetricsPort: 9094,
    }),
  ];
}

function policies(): readonly FormerResource[] {
  return [
    resource("globalnetworkpolicies", "GlobalNetworkPolicy", "default.deny-metadata", {
      tier: "default",
      order: 10,
      selector: "all()",
      types: ["Egress"],
      egress: [{ action: "Deny", destination: { nets: ["169.254.169.254/32"] } }, { action: "Allow" }],
    }),
    resource(
      "networkpolicies",
      "NetworkPolicy",
      "default.allow-web",
      {
        tier: "default",
        selector: 'app == "web"',
        types: ["Ingress"],
        ingress: [{ action: "Allow", protocol: "TCP", source: {}, destination: { ports: [8080] } }],
      },
      {
        namespace: "shop",
        labels: { team: "shop" },
        annotations: { reviewed: "yes" },
        ownerReferences: [{ apiVersion: "apps/v1", kind: "Deployment", name: "web", uid: FORMER_OWNER_UID }],
      },
    ),
    resource("stagedglobalnetworkpolicies", "StagedGlobalNetworkPolicy", "default.deny-metadata", {
      stagedAction: "Delete",
      tier: "default",
    }),
    resource(
      "stagednetworkpolicies",
      "StagedNetworkPolicy",
      "default.allow-web",
      { stagedAction: "Set", tier: "default", selector: 'app == "web"', types: ["Ingress"] },
      { namespace: "shop" },
    ),
    resource(
      "stagedkubernetesnetworkpolicies",
      "StagedKubernetesNetworkPolicy",
      "default.of-orchestrator",
      { stagedAction: "Set", podSelector: {}, policyTypes: ["Ingress"] },
      { namespace: "shop" },
    ),
    resource(
      "networksets",
      "NetworkSet",
      "partners",
      { nets: ["203.0.113.0/24"] },
      { namespace: "shop", labels: { role: "partner" } },
    ),
    resource(
      "globalnetworksets",
      "GlobalNetworkSet",
      "blocked",
      { nets: ["198.51.100.0/24"] },
      { labels: { role: "blocked" } },
    ),
  ];
}

function hosts(): readonly FormerResource[] {
  return [
    resource(
      "hostendpoints",
      "HostEndpoint",
      "one-eth0",
      { node: "one", interfaceName: "eth0", expectedIPs: ["192.0.2.1"] },
      {
        labels: { role: "worker" },
      },
    ),
    resource(
      "hostendpoints",
      "HostEndpoint",
      "two-auto-hep",
      { node: "two", interfaceName: "*", expectedIPs: ["192.0.2.2"], profiles: [`${product}-default-allow`] },
      { labels: { [`${labelPrefix}created-by`]: `${product}-kube-controllers` } },
    ),
  ];
}

function routing(): readonly FormerResource[] {
  return [
    resource("bgpconfigurations", "BGPConfiguration", "default", {
      asNumber: 64512,
      logSeverityScreen: "Info",
      nodeToNodeMeshEnabled: true,
    }),
    resource("bgppeers", "BGPPeer", "rack-switch", { peerIP: "192.0.2.254", asNumber: 64513, nodeSelector: "all()" }),
    resource("bgpfilters", "BGPFilter", "own-only", {
      exportV4: [{ action: "Accept", matchOperator: "In", cidr: "192.168.0.0/16" }],
    }),
  ];
}

interface Metadata {
  readonly namespace?: string;
  readonly [field: string]: unknown;
}

/** What users write of the metadata is hidden in an annotation. */
function resource(plural: string, kind: string, name: string, spec: object, metadata: Metadata = {}): FormerResource {
  const { namespace, ...hidden } = metadata;
  const text = JSON.stringify({
    ...hidden,
    creationTimestamp: "2023-07-22T04:00:00Z",
    uid: uidOf(`${plural}/${name}`),
  });
  const { object } = bare(plural, kind, name, spec);
  const place = namespace === undefined ? {} : { namespace };
  return {
    plural,
    object: { ...object, metadata: { name, ...place, annotations: { [`${labelPrefix}metadata`]: text } } },
  };
}

/** Records of IPAM were not served by the aggregated API, and hide nothing. */
function bare(plural: string, kind: string, name: string, spec: object): FormerResource {
  return { plural, object: { apiVersion: apiVersionOf(FORMER_API), kind, metadata: { name }, spec } };
}

function uidOf(text: string): string {
  const hex = new Bun.CryptoHasher("md5").update(text).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
}

function formerPath({ plural, object }: FormerResource): string {
  const { namespace } = object.metadata;
  return `/apis/${apiVersionOf(FORMER_API)}/${namespace === undefined ? "" : `namespaces/${namespace}/`}${plural}`;
}

/** Sequence numbers are integers of 64 bits in the text. */
function formerText({ object }: FormerResource): string {
  const numbers: bigint[] = [];
  const text = JSON.stringify(object, (_, value) => {
    if (typeof value !== "bigint") return value;
    numbers.push(value);
    return `@${numbers.length - 1}@`;
  });
  return text.replaceAll(/"@(\d+)@"/g, (_, index) => String(numbers[Number(index)]));
}

type RawClient = {
  request(request: { method: "POST"; path: string; body: string }): Promise<{ status: number; text: string }>;
};

export async function createFormerResources(client: RawClient, resources = formerResources()): Promise<void> {
  const create = async (path: string, body: string) => {
    const { status, text } = await client.request({ method: "POST", path, body });
    if (status >= 300) throw new Error(`${path}: ${text}`);
    return text;
  };
  // Without its owner the garbage collector deletes a resource after a while.
  const created = JSON.parse(await create("/apis/apps/v1/namespaces/shop/deployments", JSON.stringify(OWNER)));
  const owner: string = created.metadata.uid;
  for (const each of resources) await create(formerPath(each), formerText(each).replaceAll(FORMER_OWNER_UID, owner));
}

const LABELS = { app: "owner" };
const OWNER = {
  ...{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web" } },
  spec: {
    replicas: 0,
    selector: { matchLabels: LABELS },
    template: { metadata: { labels: LABELS }, spec: { containers: [{ name: "web", image: "example.org/web" }] } },
  },
};

/** Their namespaces and themselves, as the earlier plugin has annotated them. Their kubelets are imitated. */
export async function createFormerPods(objects: Pick<ClusterObjects, "create" | "read">): Promise<void> {
  for (const namespace of new Set(FORMER_PODS.map((pod) => pod.namespace))) {
    if ((await objects.read(`/api/v1/namespaces/${namespace}`)) !== undefined) continue;
    await objects.create("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
    // The controller manager creates it; without it a pod is refused.
    const account = `/api/v1/namespaces/${namespace}/serviceaccounts/default`;
    await pollUntil(async () => (await objects.read(account)) !== undefined, `the account of namespace ${namespace}`);
  }
  for (const { namespace, name, node, address, container } of FORMER_PODS) {
    const prefix = identity.annotationPrefix;
    await objects.create(`/api/v1/namespaces/${namespace}/pods`, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        name,
        labels: { app: name.split("-")[0] },
        annotations: {
          [`${prefix}containerID`]: container,
          [`${prefix}podIP`]: `${address}/32`,
          [`${prefix}podIPs`]: `${address}/32`,
        },
      },
      spec: { nodeName: node, automountServiceAccountToken: false, containers: [{ name: "main", image: "main:1" }] },
    });
  }
}
