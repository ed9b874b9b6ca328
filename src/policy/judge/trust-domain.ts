export const DEFAULT_TRUST_DOMAIN = "cluster.local";
