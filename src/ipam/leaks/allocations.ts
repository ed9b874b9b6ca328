/** The addresses of a block that attachments and tunnels of nodes hold, and whose they are. Pure. */
import { type Address, formatAddress } from "../../ip/address.ts";
import type { Prefix } from "../../ip/prefix.ts";
import { INTERFACE_ATTRIBUTE, type IPAMBlock, NETWORK_ATTRIBUTE, NODE_ATTRIBUTE } from "../../model/ipam-block.ts";
import { keptOf } from "../../model/kept-address.ts";
import { resourceKey } from "../../model/keys.ts";
import { tunnelTitle } from "../../model/tunnel-address.ts";
import { workloadEndpointName } from "../../model/workload-endpoint-name.ts";
import { addressAt, attributesOf } from "../block.ts";

/** An address that is recorded for a container of a node, or for a tunnel of it. */
export interface NodeAllocation {
  readonly address: Address;
  readonly block: Prefix;
  readonly handle: string;
  readonly sequenceNumber: bigint | undefined;
  readonly network: string;
  readonly node: string;
  readonly containerId: string;
  /** Absent if the address was given to another plugin, which has no link of ours. */
  readonly ifname: string | undefined;
  readonly assignedAt: Date | undefined;
  /** Of the container, if it belongs to one. */
  readonly pod?: { readonly namespace: string; readonly name: string };
  /** Where its endpoint is, if it has one. */
  readonly endpointKey: string | undefined;
  /** It is kept for the identity of its pod or container: a release ends its use (block.ts). */
  readonly isKept?: true;
  /** "VXLAN tunnel": then it belongs to no container, and network and container are empty. */
  readonly tunnel?: string;
}

/** The namespace of containers without a pod. */
export const OTHER_NAMESPACE = "default";

/** Addresses that are kept for a pod, and that no container uses, belong to no node. */
export function allocationsIn(block: IPAMBlock): readonly NodeAllocation[] {
  return [...block.allocations.keys()].flatMap((ordinal): NodeAllocation[] => {
    const attributes = attributesOf(block, ordinal);
    const {
      [NETWORK_ATTRIBUTE]: network,
      [NODE_ATTRIBUTE]: node,
      [INTERFACE_ATTRIBUTE]: ifname,
      timestamp,
      pod,
      namespace,
    } = attributes?.secondary ?? {};
    const handle = attributes?.handleId;
    if (node === undefined || handle === undefined) return [];
    const assignedAt = new Date(timestamp ?? "");
    const common = {
      address: addressAt(block, ordinal),
      block: block.cidr,
      handle,
      sequenceNumber: block.sequenceNumberForAllocation[ordinal],
      node,
      assignedAt: Number.isNaN(assignedAt.getTime()) ? undefined : assignedAt,
    };
    const tunnel = tunnelTitle(attributes?.secondary ?? {});
    if (tunnel !== undefined)
      return [{ ...common, network: "", containerId: "", ifname: undefined, endpointKey: undefined, tunnel }];
    const kept = keptOf(attributes);
    const containerId = kept === undefined ? containerOf(handle, network) : kept.user?.containerId;
    if (network === undefined || containerId === undefined) return [];
    return [
      {
        ...common,
        ...(kept === undefined ? {} : { isKept: true }),
        network,
        containerId,
        ifname,
        ...(pod === undefined || namespace === undefined ? {} : { pod: { namespace, name: pod } }),
        endpointKey: ifname === undefined ? undefined : endpointKeyOf({ node, containerId, ifname, pod, namespace }),
      },
    ];
  });
}

function containerOf(handle: string, network: string | undefined): string | undefined {
  return network !== undefined && handle.startsWith(`${network}.`) ? handle.slice(network.length + 1) : undefined;
}

function endpointKeyOf(of: {
  readonly node: string;
  readonly containerId: string;
  readonly ifname: string;
  readonly pod: string | undefined;
  readonly namespace: string | undefined;
}): string | undefined {
  const { node, containerId, ifname, pod, namespace } = of;
  const orchestrator = pod === undefined ? "cni" : "k8s";
  const named = workloadEndpointName({ node, orchestrator, workload: pod ?? containerId, endpoint: ifname });
  return named.ok
    ? resourceKey("workloadendpoints", { namespace: namespace ?? OTHER_NAMESPACE, name: named.name })
    : undefined;
}

/** An address that is assigned again is another one. */
export function identityOf({ address, sequenceNumber }: Pick<NodeAllocation, "address" | "sequenceNumber">): string {
  return `${formatAddress(address)} ${sequenceNumber}`;
}

/** `10.0.0.5 (container "4f6c", interface "eth0" of network "pods")`, `10.0.0.6 (VXLAN tunnel of node n1)` */
export function describeNodeAllocation(
  allocation: Pick<NodeAllocation, "address" | "containerId" | "ifname" | "network" | "node" | "tunnel">,
): string {
  const { address, containerId, ifname, network, node, tunnel } = allocation;
  if (tunnel !== undefined) return `${formatAddress(address)} (${tunnel} of node ${node})`;
  return `${formatAddress(address)} (container "${containerId}", interface "${ifname ?? ""}" of network "${network}")`;
}
