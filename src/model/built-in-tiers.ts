/** Tiers that exist without a record, apart from the schema of tiers, for those who need only their names. */
export const DEFAULT_TIER = "default";
/** Of the orchestrator's ClusterNetworkPolicies. */
export const ADMIN_TIER = "kube-admin";
export const BASELINE_TIER = "kube-baseline";

/** What a record may change is their order. */
export const BUILT_IN_TIERS: ReadonlyMap<string, { readonly order: number; readonly defaultAction: "Deny" | "Pass" }> =
  new Map([
    [ADMIN_TIER, { order: 1_000, defaultAction: "Pass" }],
    [DEFAULT_TIER, { order: 1_000_000, defaultAction: "Deny" }],
    [BASELINE_TIER, { order: 10_000_000, defaultAction: "Pass" }],
  ]);
