/** The address families of a test cluster: its pools and the product's config in each case. */
export type Families = "IPv4" | "dual stack" | "IPv6 only";

interface FamiliesRow {
  /** In the order in which the pods report their addresses. */
  readonly families: readonly ["ipv4" | "ipv6", "ipv6"?];
  readonly ipam: Readonly<Record<string, string>>;
}

export const FAMILIES: Readonly<Record<Families, FamiliesRow>> = {
  IPv4: { families: ["ipv4"], ipam: {} },
  "dual stack": { families: ["ipv4", "ipv6"], ipam: { assign_ipv6: "true" } },
  "IPv6 only": { families: ["ipv6"], ipam: { assign_ipv4: "false", assign_ipv6: "true" } },
};

export interface TestPool {
  readonly name: string;
  readonly family: "ipv4" | "ipv6";
  readonly cidr: string;
  /** What its addresses begin with. */
  readonly prefix: string;
  /** Whether a pod gets an address of it only if it asks for this pool. */
  readonly onlyIfAsked: boolean;
}

const POOLS: readonly TestPool[] = [
  { name: "usual-ipv4", family: "ipv4", cidr: "10.78.0.0/24", prefix: "10.78.0.", onlyIfAsked: false },
  { name: "usual-ipv6", family: "ipv6", cidr: "fd78::/120", prefix: "fd78::", onlyIfAsked: false },
  { name: "blue-ipv4", family: "ipv4", cidr: "10.79.0.0/24", prefix: "10.79.0.", onlyIfAsked: true },
  { name: "blue-ipv6", family: "ipv6", cidr: "fd79::/120", prefix: "fd79::", onlyIfAsked: true },
];

/** The pools of these families, in the order of the addresses of a pod. */
export function poolsOf(families: Families, which: "usual" | "blue" | "all"): readonly TestPool[] {
  const wanted = POOLS.filter(({ onlyIfAsked }) => which === "all" || onlyIfAsked === (which === "blue"));
  return FAMILIES[families].families.flatMap((family) => wanted.filter((pool) => pool.family === family));
}
