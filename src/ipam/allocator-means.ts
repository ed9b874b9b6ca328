/** What the allocator works with. */
import type { Datastore } from "../datastore/datastore.ts";
import type { Pace } from "./commit-loop.ts";
import type { HintStore } from "./hints.ts";
import type { Turn } from "./host-turn.ts";

/** What the allocator needs of the world. */
export interface AllocatorMeans extends Pace {
  readonly now: () => Date;
  readonly warn?: (message: string) => void;
  /** Where the blocks this host used last are remembered; for the life of the process when absent. */
  readonly hints?: HintStore;
  /** Lets the processes of one host go one after another instead of losing races to each other. */
  readonly turn?: Turn;
}

export interface AllocatorParts {
  readonly store: Datastore;
  readonly means: AllocatorMeans;
  readonly hints: HintStore;
}
