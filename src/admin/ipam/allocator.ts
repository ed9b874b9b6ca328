import type { Datastore } from "../../datastore/datastore.ts";
import { type Allocator, openAllocator } from "../../ipam/allocator.ts";
import type { AllocatorMeans } from "../../ipam/allocator-means.ts";
import type { Clock } from "../main/context.ts";

/** The allocator, with the clock and the random numbers of the command's context. */
export function allocatorFor(store: Datastore, context: Clock, { lock }: Pick<AllocatorMeans, "lock"> = {}): Allocator {
  return openAllocator(store, { ...allocatorMeans(context), ...(lock && { lock }) });
}

export function allocatorMeans(context: Clock): AllocatorMeans {
  return {
    now: () => context.now(),
    random: () => context.random(),
    wait: (milliseconds) => context.wait(milliseconds),
  };
}
