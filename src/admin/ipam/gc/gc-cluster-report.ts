/** What a search for leaks in the whole cluster found, as text and as JSON. Pure. */
import { counted } from "../../../counted.ts";
import { identity } from "../../../identity.ts";
import { formatAddress } from "../../../ip/address.ts";
import { describeNodeAllocation, type NodeAllocation } from "../../../ipam/leaks/allocations.ts";
import type { ClusterReport } from "./gc-cluster.ts";

export function reportText({ addresses, blocks, unjudged }: ClusterReport): string {
  const count = addresses.filter(({ state }) => state !== "kept").length;
  const kept = addresses.length - count;
  return [
    ...addresses.map(
      ({ state, allocation, reason, kept: but }) =>
        `${state} ${titleOf(allocation)}: ${reason}${but === undefined ? "" : `; ${but}`}`,
    ),
    ...blocks.map(({ state, block, node, reason }) => `${state} block ${block} of node ${node}: ${reason}`),
    `Cluster: ${counted(count, "leaked address", "leaked addresses")}, ${kept} kept for now, ${counted(blocks.length, "surplus block")}`,
    ...(unjudged === 0
      ? []
      : [
          `${counted(unjudged, "address is", "addresses are")} not known to the orchestrator: "${identity.adminTool} ipam gc" on their own host judges them`,
        ]),
    "",
  ].join("\n");
}

/** `10.0.0.5 (pod red/web, container "4f6c" on node n1)` */
function titleOf(allocation: NodeAllocation): string {
  const { address, pod, containerId, node, tunnel } = allocation;
  if (tunnel !== undefined) return describeNodeAllocation(allocation);
  const owner = pod === undefined ? "" : `pod ${pod.namespace}/${pod.name}, `;
  return `${formatAddress(address)} (${owner}container "${containerId}" on node ${node})`;
}

export function reportJson({ addresses, blocks, unjudged }: ClusterReport, isDryRun: boolean): string {
  const report = {
    dryRun: isDryRun,
    addresses: addresses.map(({ allocation, state, reason, kept }) => ({
      address: formatAddress(allocation.address),
      namespace: allocation.pod?.namespace,
      pod: allocation.pod?.name,
      container: allocation.tunnel === undefined ? allocation.containerId : undefined,
      tunnel: allocation.tunnel,
      node: allocation.node,
      assignedAt: allocation.assignedAt?.toISOString(),
      state,
      reason,
      kept,
    })),
    blocks,
    unjudged,
  };
  return `${JSON.stringify(report, undefined, 2)}\n`;
}
