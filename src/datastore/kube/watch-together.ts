/**
 * Watches several collections as one: the events of all of them as they come. A bookmark is the revision that all of
 * them have reached, so that a watch from it misses nothing; the events of a collection that was ahead come again.
 */
import type { DatastoreEvent } from "../datastore.ts";
import { lowestRevision } from "./lists.ts";
import { type Watched, type WatchMeans, watchCollection } from "./watches.ts";

interface Reached {
  readonly revision: string;
  readonly isUnheard?: true;
}

export async function* watchTogether(
  collections: readonly Watched[],
  from: string,
  means: WatchMeans,
): AsyncGenerator<DatastoreEvent> {
  const ending = new AbortController();
  const signal = AbortSignal.any([means.signal, ending.signal]);
  const watches = collections.map((collection) => watchCollection(collection, from, { ...means, signal }));
  const reached = new Map<number, Reached>();
  const nextOf = (index: number) => {
    const next = watches[index]?.next().then((result) => ({ index, result }));
    // It may fail while the consumer is busy with another event.
    next?.catch(() => {});
    return next;
  };
  const waiting = watches.map((_, index) => nextOf(index));
  try {
    for (;;) {
      const next = await Promise.race(waiting);
      if (next === undefined || next.result.done) return;
      const { index, result } = next;
      waiting[index] = nextOf(index);
      if (result.value.kind === "bookmark") {
        reached.set(index, result.value);
        // All of them must be open.
        if (reached.size === watches.length) {
          const all = boundBy(reached, collections, means);
          const revision = lowestRevision(all.map((each) => each.revision));
          yield { kind: "bookmark", revision, ...(all.some(({ isUnheard }) => isUnheard) && { isUnheard: true }) };
        }
      } else yield result.value;
    }
  } finally {
    ending.abort();
    await Promise.allSettled(waiting);
  }
}

/** One that the API does not have holds no other back. */
function boundBy(
  reached: ReadonlyMap<number, Reached>,
  collections: readonly Watched[],
  { lists }: WatchMeans,
): readonly Reached[] {
  const present = [...reached].filter(([index]) => {
    const collection = collections[index]?.collection;
    return collection !== undefined && !lists.isAbsent(collection);
  });
  return present.length === 0 ? [...reached.values()] : present.map(([, each]) => each);
}
