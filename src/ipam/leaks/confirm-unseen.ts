/**
 * Addresses that their host shows no sign of, and cannot judge alone (`findUnseen`): they are leaked if the orchestrator's
 * API says now that their pod does not use them, as the search in the whole cluster judges it.
 */
import { formatAddress } from "../../ip/address.ts";
import { podRecordKey } from "../../model/pod-record.ts";
import type { NodeAllocation } from "./allocations.ts";
import { unusedReason } from "./candidates.ts";
import type { ClusterView } from "./cluster-judge.ts";
import type { Leak } from "./find.ts";
import { endpointsOf, type LiveMeans, liveView } from "./live-view.ts";

export interface UnseenEvidence extends LiveMeans {
  /** The addresses in the network namespaces of all processes of the host; `undefined` if those cannot be seen. */
  readonly containerAddresses: () => Promise<ReadonlySet<string> | undefined>;
}

/** `unseen`: all addresses of a handle, for each handle. All of them are leaked, or none. */
export async function confirmUnseen(
  unseen: readonly (readonly NodeAllocation[])[],
  evidence: UnseenEvidence,
): Promise<readonly Leak[]> {
  const leaks: Leak[] = [];
  for (const held of unseen) {
    const endpoints = await endpointsOf(held, evidence.store);
    const view = await liveView(held, endpoints, evidence);
    const found = held.some(({ isKept }) => isKept) ? unusedKept(held, view) : unusedReason(held, view);
    if (found === undefined || (await mayBeInContainer(held, evidence))) continue;
    const reason = `${found.reason}, and the host has no link for it`;
    leaks.push(...held.map((allocation) => ({ allocation, reason })));
  }
  return leaks;
}

/**
 * The machine that used it is gone: its node was deleted, or this machine could not have registered it. The next pod waits
 * for it, perhaps on this very node, and has no addresses before.
 */
function unusedKept(held: readonly NodeAllocation[], { podAt }: ClusterView): { readonly reason: string } | undefined {
  const has = ({ pod, address }: NodeAllocation) =>
    pod !== undefined && podAt(podRecordKey(pod))?.addresses.includes(formatAddress(address)) === true;
  return held.some(has) ? undefined : { reason: "it was assigned before this machine registered the node" };
}

/** Another plugin has no link of ours, but the container has the address as long as it runs. */
async function mayBeInContainer(
  held: readonly NodeAllocation[],
  { containerAddresses }: UnseenEvidence,
): Promise<boolean> {
  if (held.every(({ ifname }) => ifname !== undefined)) return false;
  const known = await containerAddresses();
  return known === undefined || held.some(({ address }) => known.has(formatAddress(address)));
}
