/** Corrects the neighbours and forwarding entries of the VXLAN devices. */
import { deleteForwardingEntry, setForwardingEntry } from "../../linux/rtnetlink/forwarding-entry.ts";
import type { Link } from "../../linux/rtnetlink/link.ts";
import { deleteNeighbour, setNeighbour } from "../../linux/rtnetlink/neighbour.ts";
import type { PlannedPeer, RoutePlan, TunnelName } from "../../routing/plan.ts";
import type { NetworkKernel } from "./kernel-network.ts";
import { compareEntries, type PeerEntries } from "./peer-entries.ts";
import { put, refusalsOf, removal, type Step } from "./steps.ts";

export interface CorrectedEntries {
  readonly restored: number;
  readonly refusals: readonly string[];
  /** To be removed when no route needs them any more. */
  readonly stale: readonly PeerEntries[];
}

/** Sets what is missing or wrong. */
export function correctEntries(
  plan: RoutePlan,
  devices: ReadonlyMap<TunnelName, Link>,
  kernel: NetworkKernel,
): CorrectedEntries {
  const peers: ReadonlyMap<TunnelName, readonly PlannedPeer[]> = Map.groupBy(
    plan.peers.values(),
    ({ tunnel }): TunnelName => tunnel,
  );
  const vxlans = [...devices].filter(([name]) => name !== "ipip4");
  const differences = vxlans.map(([name, { index }]) => compareEntries(peers.get(name) ?? [], kernel.entries(index)));
  const steps = differences.flatMap(({ missing: { forwarding, neighbours } }): Step[] => [
    ...forwarding.map((entry) => put(setForwardingEntry(entry))),
    ...neighbours.map((neighbour) => put(setNeighbour(neighbour))),
  ]);
  const refusals = refusalsOf(kernel, steps);
  return { restored: steps.length - refusals.length, refusals, stale: differences.map(({ stale }) => stale) };
}

/** Returns their number. */
export function removeEntries(stale: readonly PeerEntries[], kernel: NetworkKernel): number {
  const steps = stale.flatMap(({ neighbours, forwarding }): Step[] => [
    ...neighbours.map((neighbour) => removal(deleteNeighbour(neighbour))),
    ...forwarding.map((entry) => removal(deleteForwardingEntry(entry))),
  ]);
  return steps.length - refusalsOf(kernel, steps).length;
}
