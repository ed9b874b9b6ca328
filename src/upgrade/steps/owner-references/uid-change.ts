/** Whether resources of the product have other UIDs after the upgrade. Pure. */
import type { Facts } from "../../engine/facts.ts";

/** They are stored anew, or were shown by an aggregated API that goes. */
export function willChangeUids({ storage, hasAggregatedApi }: Pick<Facts, "storage" | "hasAggregatedApi">): boolean {
  return storage === "former" || hasAggregatedApi;
}
