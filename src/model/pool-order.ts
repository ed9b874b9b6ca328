/**
 * Which of two pools that share addresses came first: IPAM assigns only from that one, and blocks of its size count. Whoever may
 * create a pool cannot choose its time.
 */
interface CreatedPool {
  /** When it was created; empty if unknown. */
  readonly createdAt: string;
}

/** The API records whole seconds: two pools of the same second precede each other, since either may have been seen first. */
export function precedes(other: CreatedPool, pool: CreatedPool): boolean {
  return momentOf(other) <= momentOf(pool);
}

/** A pool without a time is older than this product's own. */
function momentOf({ createdAt }: CreatedPool): number {
  const moment = Date.parse(createdAt);
  return Number.isNaN(moment) ? 0 : moment;
}
