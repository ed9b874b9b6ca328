/** Pools as a map down to blocks and single addresses. One address is one letter of `Block.use`, so that large pools stay small. */
import * as v from "valibot";

/** Letter -> what the address is. */
export const ADDRESS_USES = {
  ".": "free",
  u: "used",
  b: "used by another node",
  r: "reserved",
  R: "resting",
  l: "leaked",
  t: "tunnel or service of a node",
  k: "kept for a pod that does not run",
} as const;
export type AddressUse = keyof typeof ADDRESS_USES;

const countsSchema = v.object({
  /** Addresses, as decimal text: an IPv6 pool has more than a number holds. */
  size: v.string(),
  /** All that are assigned: the borrowed, leaked and kept ones and those of tunnels are among them. */
  used: v.number(),
  borrowed: v.number(),
  /** Of those that are not in use. */
  reserved: v.number(),
  resting: v.number(),
  leaked: v.number(),
  /** Kept for pods that do not run. */
  kept: v.number(),
  blocks: v.number(),
});

export const poolSchema = v.object({
  name: v.string(),
  cidr: v.string(),
  blockSize: v.number(),
  disabled: v.boolean(),
  /** Which nodes take addresses of it: a selector, `all()`. */
  nodeSelector: v.string(),
  /** Whose pods take addresses of it: a selector; absent: of every namespace. */
  namespaceSelector: v.exactOptional(v.string()),
  encapsulation: v.string(),
  counts: countsSchema,
  /** Absent: too little is known, or the pool does not fill. */
  forecast: v.exactOptional(v.object({ exhausted: v.number(), perDay: v.number(), fromDays: v.number() })),
});
export type Pool = Readonly<v.InferOutput<typeof poolSchema>>;

export const poolsSchema = v.object({
  at: v.number(),
  pools: v.array(poolSchema),
  /** Records that could not be read, and what the reader may not see, in words. */
  problems: v.array(v.object({ message: v.string(), command: v.exactOptional(v.string()) })),
  hidden: v.array(v.string()),
});
export type Pools = Readonly<v.InferOutput<typeof poolsSchema>>;

export const blockSchema = v.object({
  cidr: v.string(),
  /** Absent: no node has an affinity to it. */
  node: v.exactOptional(v.string()),
  free: v.number(),
  /** A letter for each address, in order (`ADDRESS_USES`). Absent if the block has more than 4096 addresses. */
  use: v.exactOptional(v.string()),
});
export type Block = Readonly<v.InferOutput<typeof blockSchema>>;

/** A line each: first the pool, then its blocks in the order of their addresses. */
export const poolMapAnswerSchema = v.union([v.object({ pool: poolSchema }), v.object({ block: blockSchema })]);
export type PoolMapAnswer = Readonly<v.InferOutput<typeof poolMapAnswerSchema>>;

export const addressSchema = v.object({
  address: v.string(),
  use: v.picklist(Object.keys(ADDRESS_USES) as [AddressUse, ...AddressUse[]]),
  pool: v.exactOptional(v.string()),
  block: v.exactOptional(v.string()),
  node: v.exactOptional(v.string()),
  /** `pod shop/web-1`, `container ...`, `tunnel of node-a`. Absent: free, or the reader may not see it. */
  owner: v.exactOptional(v.string()),
  /** Milliseconds since 1970. */
  since: v.exactOptional(v.number()),
  handle: v.exactOptional(v.string()),
  /** In words: why it counts as leaked, kept, reserved or resting, and what to do. */
  reason: v.exactOptional(v.string()),
  command: v.exactOptional(v.string()),
});
export type AddressDetail = Readonly<v.InferOutput<typeof addressSchema>>;
