/**
 * The stored records of a cluster of any size, for measurements of scale. Everything is numbered, so each record can be computed.
 *
 *   nodes in zones, each with one block of the VXLAN pool, from which its pods have their addresses
 *   applications: those of a policy; the pods of one application are spread over the nodes, so a node has pods of many
 *   policies: each selects the pods of one application, and allows those of another in the same namespace
 *
 * Pure.
 */
import { API_VERSION, identity } from "../../src/identity.ts";
import { formatAddress } from "../../src/ip/address.ts";
import { nthAddress, nthBlock } from "../../src/ip/block.ts";
import { formatPrefix, type Prefix, parsePrefix } from "../../src/ip/prefix.ts";
import { ipPool } from "../../src/model/ip-pool.ts";
import { type IPAMBlock, writeBlock } from "../../src/model/ipam-block.ts";
import { writeHandle } from "../../src/model/ipam-handle.ts";
import { PRODUCT_KEYS } from "../../src/model/keys.ts";
import { ENDPOINT, NETWORK_POLICY, NODE, NODE_AGENT_CONFIGURATION, POOL, PROFILE } from "../../src/model/kinds.ts";
import { networkPolicy } from "../../src/model/network-policy.ts";
import { node as nodeResource } from "../../src/model/node.ts";
import { nodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";
import { profile } from "../../src/model/profile.ts";
import { workloadEndpoint } from "../../src/model/workload-endpoint.ts";

export interface StoredRecord {
  readonly key: string;
  readonly value: string;
}

export interface ClusterSize {
  readonly nodes: number;
  readonly podsPerNode: number;
  /** A multiple of the number of namespaces. */
  readonly policies: number;
}

const NAMESPACES = 100;
export const ZONES = 3;
const POOL_CIDR = "10.0.0.0/8";
const BLOCK_LENGTH = 26;
/** Pods of the application with number N + PEER_DISTANCE may connect to those of number N: of the same namespace. */
const PEER_DISTANCE = NAMESPACES;
const PORT = 80;

export function nodeName(index: number): string {
  return `node-${index}`;
}

/** Each zone has every third node. */
export function nodesOfZone({ nodes }: Pick<ClusterSize, "nodes">, zone: number): readonly number[] {
  return Array.from({ length: nodes }, (_, index) => index).filter((index) => index % ZONES === zone);
}

/** `version`: of its agent, which a rolling upgrade changes. */
export function nodeRecord(index: number, version = "1"): StoredRecord {
  const name = nodeName(index);
  const value = nodeResource.make(
    {
      name,
      labels: {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": `zone-${index % ZONES}`,
      },
      annotations: { [`${identity.labelPrefix}agent-version`]: version },
    },
    {
      bgp: { ipv4Address: `${nodeAddress(index)}/12` },
      addresses: [{ address: `${nodeAddress(index)}/12` }],
      ipv4VXLANTunnelAddr: formatAddress(blockOf(index).network),
      vxlanTunnelMACAddr: tunnelMac(name),
      orchRefs: [{ nodeName: name, orchestrator: "k8s" }],
    },
  );
  return { key: NODE.key({ name }), value: NODE.codec.write(value) };
}

/** All are in one network. */
export function nodeAddress(index: number): string {
  const host = index + 1;
  return `172.${16 + (host >> 16)}.${(host >> 8) & 255}.${host & 255}`;
}

/** The tunnel's address is the first of the block, the pods' are the next ones. */
export function blockRecord(index: number, pods: number): StoredRecord {
  const cidr = blockOf(index);
  const ordinals = Array.from({ length: 2 ** (32 - BLOCK_LENGTH) }, (_, ordinal) => ordinal);
  const used = pods + 1;
  const block: IPAMBlock = {
    cidr,
    affinity: `host:${nodeName(index)}`,
    allocations: ordinals.map((ordinal) => (ordinal < used ? ordinal : undefined)),
    unallocated: ordinals.slice(used),
    attributes: ordinals.slice(0, used).map((ordinal) => ({
      handleId: ordinal === 0 ? tunnelHandle(index) : `${identity.product}.container-${index}-${ordinal}`,
      secondary:
        ordinal === 0
          ? { node: nodeName(index), type: "vxlanTunnelAddress" }
          : { node: nodeName(index), namespace: "shop", pod: `pod-${index}-${ordinal}` },
    })),
    sequenceNumber: 1n,
    sequenceNumberForAllocation: {},
    deleted: false,
  };
  return { key: PRODUCT_KEYS.blockKey(cidr), value: writeBlock(block) };
}

/** Of the tunnel's address: its agent looks whether it is still assigned. */
function handleRecord(index: number): StoredRecord {
  const blocks = { [formatPrefix(blockOf(index))]: 1 };
  return { key: PRODUCT_KEYS.handleKey(tunnelHandle(index)), value: writeHandle({ blocks, deleted: false }) };
}

/** Nodes of such a cluster reach each other by tunnels, without BGP. */
function configurationRecord(): StoredRecord {
  const name = "default";
  const value = nodeAgentConfiguration.make({ name }, { bgp: "Disabled" });
  return { key: NODE_AGENT_CONFIGURATION.key({ name }), value: NODE_AGENT_CONFIGURATION.codec.write(value) };
}

function poolRecord(): StoredRecord {
  const name = "pods";
  const spec = { cidr: POOL_CIDR, vxlanMode: "Always", blockSize: BLOCK_LENGTH };
  const value = ipPool.readObject({ apiVersion: API_VERSION, kind: "IPPool", metadata: { name }, spec }, name);
  return { key: POOL.key({ name }), value: POOL.codec.write(value) };
}

/** The pods of a node are of different applications, and those of an application on different nodes. */
export function applicationOf(node: number, pod: number, { policies, podsPerNode }: ClusterSize): number {
  return (node * podsPerNode + pod) % policies;
}

/** The application whose pods may connect to those of this one. */
export function peerOf(application: number, { policies }: Pick<ClusterSize, "policies">): number {
  return (application + PEER_DISTANCE) % policies;
}

export function podAddress(node: number, pod: number): string {
  const block = blockOf(node);
  return formatAddress(nthAddress(block, pod + 1) ?? block.network);
}

/** The host's side of the pod's link. */
export function podInterface(pod: number): string {
  return `${identity.interfacePrefix}${pod}`;
}

export function podRecord(
  node: number,
  pod: number,
  application: number,
  address = podAddress(node, pod),
): StoredRecord {
  const namespace = namespaceOf(application);
  const pods = `app${application}-6d4cf56db6-${node}x${pod}`;
  const name = `${nodeName(node).replaceAll("-", "--")}-k8s-${pods.replaceAll("-", "--")}-eth0`;
  const value = workloadEndpoint.make(
    {
      name,
      namespace,
      labels: {
        app: `app${application}`,
        "pod-template-hash": "6d4cf56db6",
        [`${identity.labelPrefix}namespace`]: namespace,
        [`${identity.labelPrefix}orchestrator`]: "k8s",
        [`${identity.labelPrefix}serviceaccount`]: "default",
      },
    },
    {
      node: nodeName(node),
      orchestrator: "k8s",
      endpoint: "eth0",
      pod: pods,
      containerID: new Bun.CryptoHasher("sha256").update(name).digest("hex"),
      ipNetworks: [`${address}/32`],
      profiles: [`kns.${namespace}`, `ksa.${namespace}.default`],
      interfaceName: podInterface(pod),
      mac: "02:4e:11:22:33:44",
    },
  );
  return { key: ENDPOINT.key({ name, namespace }), value: ENDPOINT.codec.write(value) };
}

export function policyRecord(application: number, size: Pick<ClusterSize, "policies">, port = PORT): StoredRecord {
  const [name, namespace] = [`policy${application}`, namespaceOf(application)];
  const value = networkPolicy.make(
    { name, namespace },
    {
      tier: "default",
      order: 1000,
      selector: `app == 'app${application}'`,
      types: ["Ingress"],
      ingress: [
        {
          action: "Allow",
          protocol: "TCP",
          source: { selector: `app == 'app${peerOf(application, size)}'` },
          destination: { ports: [port] },
        },
      ],
    },
  );
  return { key: NETWORK_POLICY.key({ name, namespace }), value: NETWORK_POLICY.codec.write(value) };
}

function profileRecords(namespace: string): readonly StoredRecord[] {
  const ofNamespace = profile.make(
    { name: `kns.${namespace}` },
    {
      ingress: [{ action: "Allow" }],
      egress: [{ action: "Allow" }],
      labelsToApply: { [`pcns.${identity.labelPrefix}name`]: namespace },
    },
  );
  const ofAccount = profile.make(
    { name: `ksa.${namespace}.default` },
    { labelsToApply: { [`pcsa.${identity.labelPrefix}name`]: "default" } },
  );
  return [ofNamespace, ofAccount].map((each) => ({
    key: PROFILE.key({ name: each.metadata.name }),
    value: PROFILE.codec.write(each),
  }));
}

/** What does not depend on the number of nodes. */
export function sharedRecords(size: Pick<ClusterSize, "policies">): readonly StoredRecord[] {
  const applications = Array.from({ length: size.policies }, (_, application) => application);
  return [
    poolRecord(),
    configurationRecord(),
    ...Array.from({ length: NAMESPACES }, (_, index) => profileRecords(namespaceOf(index))).flat(),
    ...applications.map((application) => policyRecord(application, size)),
  ];
}

/** The records of the node, of its block, of its tunnel and of its pods. */
export function recordsOfNode(index: number, size: ClusterSize): readonly StoredRecord[] {
  return [
    nodeRecord(index),
    blockRecord(index, size.podsPerNode),
    handleRecord(index),
    ...Array.from({ length: size.podsPerNode }, (_, pod) => podRecord(index, pod, applicationOf(index, pod, size))),
  ];
}

function namespaceOf(application: number): string {
  return `namespace${application % NAMESPACES}`;
}

function blockOf(index: number): Prefix {
  const pool = parsePrefix(POOL_CIDR);
  const block = pool && nthBlock(pool, BLOCK_LENGTH, BigInt(index));
  if (block === undefined) throw new RangeError(`Cannot make node ${index}: the pool has no block for it`);
  return block;
}

/** As each node's agent records it. */
function tunnelMac(name: string): string {
  const digest = new Bun.CryptoHasher("sha1").update(name).digest("hex");
  return ["66", ...Array.from({ length: 5 }, (_, byte) => digest.slice(2 * byte, 2 * byte + 2))].join(":");
}

function tunnelHandle(node: number): string {
  return `vxlan-tunnel-addr-${nodeName(node)}`;
}
