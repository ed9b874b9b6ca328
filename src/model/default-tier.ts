/** Apart from the schema of tiers, for those who need only the name. */
export const DEFAULT_TIER = "default";
