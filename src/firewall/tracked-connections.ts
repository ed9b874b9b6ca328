/**
 * What the kernel tracks of the connections of pods. Later packets of a tracked
 * connection pass without policy: those of a removed pod would reach the next pod
 * with its address. So its entries are removed before the address is released.
 *
 * The kernel searches all of its entries for each address and direction, 0.3 ms each
 * with 262,144 buckets: this is done only if the host has a policy table.
 */
import { type Address, formatAddress } from "../ip/address.ts";
import { KernelError } from "../linux/kernel-error.ts";
import type { NetfilterAccess } from "../linux/netfilter-access.ts";
import { hasPolicyTable } from "./policy-table.ts";

export interface TrackedConnections {
  /** After the links of the addresses are removed. Each address is searched for once. What fails is warned about. */
  forget(addresses: readonly Address[]): Promise<void>;
}

/** `undefined` without a policy table: one small read. */
export async function trackedConnections(
  netfilter: NetfilterAccess,
  warn: (message: string) => void,
): Promise<TrackedConnections | undefined> {
  if (!(await isPolicyEnforced(netfilter))) return undefined;
  const forgotten = new Set<string>();
  return {
    async forget(addresses) {
      const others = addresses.filter((address) => !forgotten.has(formatAddress(address)));
      for (const address of others) forgotten.add(formatAddress(address));
      if (others.length > 0) await forgetAll(netfilter, others, warn);
    },
  };
}

/** A kernel without nftables, or one that does not permit to read it, has no such table of ours. */
async function isPolicyEnforced(netfilter: NetfilterAccess): Promise<boolean> {
  try {
    return await hasPolicyTable(netfilter);
  } catch (failure) {
    if (failure instanceof KernelError) return false;
    throw failure;
  }
}

/** Those that a pod has opened, and those that it answers: after DNAT only its replies show its address. */
async function forgetAll(
  netfilter: NetfilterAccess,
  addresses: readonly Address[],
  warn: (message: string) => void,
): Promise<void> {
  const { forgetConnections } = await import("../linux/conntrack.ts");
  const filters = addresses.flatMap((address) => [
    { family: address.family, source: address },
    { family: address.family, replySource: address },
  ]);
  try {
    await netfilter.withSocket((socket) => forgetConnections(socket, filters));
  } catch (failure) {
    if (!(failure instanceof KernelError)) throw failure;
    warn(`Connections of ${addresses.map(formatAddress).join(", ")} are still tracked: ${failure.message}`);
  }
}
