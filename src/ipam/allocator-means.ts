/** The dependencies of the allocator. */
import type { Datastore } from "../datastore/datastore.ts";
import type { Address } from "../ip/address.ts";
import type { Pace } from "./commit-loop.ts";
import type { HintStore } from "./hints.ts";
import type { Turn } from "./host-turn.ts";

/**
 * The time by which releases and rests count: that of the datastore, which is the same for all nodes, or of this host if the
 * datastore does not tell it.
 */
export function datastoreTime(store: Pick<Datastore, "clock">, { now }: { readonly now: () => Date }): Date {
  const time = store.clock?.();
  return time instanceof Date ? time : now();
}

/** Time, randomness, hints and locking. */
export interface AllocatorMeans extends Pace {
  readonly now: () => Date;
  /** Whether the address is one of this host, or of its gateway: it is not assigned. Reads the kernel. */
  readonly isHostAddress?: (address: Address) => boolean;
  readonly warn?: (message: string) => void;
  /** Stores the blocks this host used last; if absent, they are kept in memory. */
  readonly hints?: HintStore;
  /** Serializes the processes of one host, so that they do not lose races against each other. */
  readonly turn?: Turn;
  /** Whether a locked datastore is left as it is ("respect", the default), or the caller needs the lock for its changes. */
  readonly lock?: "respect" | "ignore";
}

export interface AllocatorParts {
  readonly store: Datastore;
  readonly means: AllocatorMeans;
  readonly hints: HintStore;
}
