/** What a search for leaks in the whole cluster found, as text and as JSON. Pure. */
import { counted } from "../../../counted.ts";
import { identity } from "../../../identity.ts";
import { formatAddress } from "../../../ip/address.ts";
import { describeNodeAllocation, type NodeAllocation } from "../../../ipam/leaks/allocations.ts";
import type { ClusterReport, State } from "./gc-cluster.ts";

export function reportText({ addresses, blocks, unjudged }: ClusterReport): string {
  const countOf = (...states: readonly State[]) => addresses.filter(({ state }) => states.includes(state)).length;
  const waiting = countOf("waits", "would wait");
  const count = countOf("released", "would release");
  const summary = [
    counted(count, "leaked address", "leaked addresses"),
    ...(waiting === 0 ? [] : [`${counted(waiting, "address", "addresses")} that pods keep`]),
    `${countOf("kept")} kept for now`,
    counted(blocks.length, "surplus block"),
  ];
  return [
    ...addresses.map(
      ({ state, allocation, reason, kept: but }) =>
        `${VERBS[state]} ${titleOf(allocation)}: ${reason}${but === undefined ? ending(allocation, state) : `; ${but}`}`,
    ),
    ...blocks.map(({ state, block, node, reason }) => `${state} block ${block} of node ${node}: ${reason}`),
    `Cluster: ${summary.join(", ")}`,
    ...(unjudged === 0
      ? []
      : [
          `${counted(unjudged, "address is", "addresses are")} not known to the orchestrator: "${identity.adminTool} ipam gc" on their own host judges them`,
        ]),
    "",
  ].join("\n");
}

const VERBS: Readonly<Record<State, string>> = {
  released: "released",
  "would release": "would release",
  waits: "ended the use of",
  "would wait": "would end the use of",
  kept: "kept",
};

function ending({ pod }: NodeAllocation, state: State): string {
  const isLeft = state === "waits" || state === "would wait";
  return isLeft && pod !== undefined ? `; it waits for pod ${pod.namespace}/${pod.name}` : "";
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
