/** The addresses of a block that attachments hold, and whose they are. Pure. */
import { type Address, formatAddress } from "../../ip/address.ts";
import type { Prefix } from "../../ip/prefix.ts";
import { type IPAMBlock, NODE_ATTRIBUTE } from "../../model/ipam-block.ts";
import { resourceKey } from "../../model/keys.ts";
import { workloadEndpointName } from "../../model/workload-endpoint-name.ts";
import { addressAt, attributesOf, INTERFACE_ATTRIBUTE, NETWORK_ATTRIBUTE } from "../block.ts";

/** An address that is recorded for a container of a node. */
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
}

/** The namespace of containers without a pod. */
export const OTHER_NAMESPACE = "default";

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
    if (network === undefined || !handle.startsWith(`${network}.`)) return [];
    const containerId = handle.slice(network.length + 1);
    const assignedAt = new Date(timestamp ?? "");
    return [
      {
        address: addressAt(block, ordinal),
        block: block.cidr,
        handle,
        sequenceNumber: block.sequenceNumberForAllocation[ordinal],
        network,
        node,
        containerId,
        ifname,
        assignedAt: Number.isNaN(assignedAt.getTime()) ? undefined : assignedAt,
        ...(pod === undefined || namespace === undefined ? {} : { pod: { namespace, name: pod } }),
        endpointKey: ifname === undefined ? undefined : endpointKeyOf({ node, containerId, ifname, pod, namespace }),
      },
    ];
  });
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

/** `10.0.0.5 (container "4f6c", interface "eth0" of network "pods")` */
export function describeNodeAllocation(
  allocation: Pick<NodeAllocation, "address" | "containerId" | "ifname" | "network">,
): string {
  const { address, containerId, ifname, network } = allocation;
  return `${formatAddress(address)} (container "${containerId}", interface "${ifname ?? ""}" of network "${network}")`;
}
