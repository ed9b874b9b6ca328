/** Where policy judges a packet. */

/** In the order in which a packet passes them. */
export const POINTS = ["host in", "workload egress", "workload ingress", "host out"] as const;
export type Point = (typeof POINTS)[number];
