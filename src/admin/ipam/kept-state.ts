/** What commands show of an address that is kept. Pure. */
import { ownerOfKept } from "../../ipam/leaks/waiting-addresses.ts";
import { endOfKeeping, type KeptAddress } from "../../model/kept-address.ts";

export interface KeptState {
  /** `pod shop/db-0` */
  readonly for: string;
  readonly owner?: string;
  readonly state: "in use" | "waiting";
  /** When it ends by itself; absent while it is used. */
  readonly until?: string;
}

export function keptState(kept: KeptAddress): KeptState {
  const end = endOfKeeping(kept);
  return {
    for: ownerOfKept(kept),
    ...(kept.owner === undefined ? {} : { owner: kept.owner }),
    state: kept.user === undefined ? "waiting" : "in use",
    ...(end === undefined ? {} : { until: end.toISOString() }),
  };
}
