/** Brings what all pods of a host share up to date before another one joins. All is usually well: a few small reads. */
import type { Address } from "../ip/address.ts";
import { KernelError } from "../linux/kernel-error.ts";
import type { NetfilterAccess } from "../linux/netfilter-access.ts";
import { applyGuard } from "./apply-guard.ts";
import { applyNat } from "./apply-nat.ts";
import { describeDrop, findUsualDrops, remedyOf } from "./forward-chains.ts";
import type { NatPool } from "./nat-table.ts";

export interface JoiningPod {
  readonly addresses: readonly Address[];
  /** All pools; absent if the NAT table is not its business: an agent follows them, or another IPAM plugin has no pools. */
  readonly pools: readonly NatPool[] | undefined;
  readonly warn: (message: string) => void;
}

export async function prepareHost(netfilter: NetfilterAccess, { addresses, pools, warn }: JoiningPod): Promise<void> {
  let isRequired = pools?.some(({ natOutgoing }) => natOutgoing) ?? false;
  try {
    await netfilter.withSocket(async (socket) => {
      if (pools !== undefined) await applyNat(socket, pools);
      isRequired = false;
      await applyGuard(socket, warn);
      const families = addresses.map(({ family }) => family);
      for (const chain of findUsualDrops(socket, families))
        warn(`${describeDrop(chain)}; to allow it: ${remedyOf(chain)}`);
    });
  } catch (failure) {
    // A kernel without nftables serves pools without NAT, and has no such chains.
    if (isRequired || !(failure instanceof KernelError)) throw failure;
  }
}
