/** Where policy judges a packet. */

/** In the order in which a packet passes them. */
export const POINTS = ["host in", "workload egress", "workload ingress", "host out"] as const;
export type Point = (typeof POINTS)[number];

/** Before the comment of the rule in the report of a denied packet: the kernel takes 127 bytes for both. */
export const POINT_CODE: Readonly<Record<Point, string>> = {
  "host in": "hi",
  "workload egress": "we",
  "workload ingress": "wi",
  "host out": "ho",
};
