/**
 * A connection to a store that fails in every possible way: reads are lost,
 * watches are refused, break between any two events, stall, end without an
 * error, deliver late and deliver again, and the history is gone at times.
 */
import { PluginError } from "../../../errors.ts";
import { type DatastoreEvent, HistoryGone } from "../../datastore.ts";
import type { FollowedStore } from "../feed.ts";

export function faultyStore(store: FollowedStore, random: () => number): FollowedStore {
  const happens = (probability: number) => random() < probability;
  const late = () => (happens(0.1) ? Bun.sleep(random() * 5) : undefined);
  const mayFail = (probability: number) => {
    if (happens(probability)) throw new PluginError("datastore-unavailable", "Cannot reach the store: as planned");
  };

  const part = <Item>(items: readonly Item[]) => {
    const start = Math.floor(random() * items.length);
    return items.slice(start, start + Math.ceil(random() * 5));
  };

  return {
    read: async (wanted, at) => {
      mayFail(0.03);
      await late();
      const snapshot = await store.read(wanted, at);
      await late();
      mayFail(0.03);
      return snapshot;
    },
    async *watch(prefix, from, signal): AsyncIterable<DatastoreEvent> {
      mayFail(0.1);
      if (happens(0.1)) throw new HistoryGone(from);
      const delivered: DatastoreEvent[] = [];
      for await (const event of store.watch(prefix, from, signal)) {
        await late();
        mayFail(0.02);
        if (happens(0.01)) return;
        if (happens(0.01)) return await untilAborted(signal);
        yield event;
        if (event.kind !== "bookmark") delivered.push(event);
        if (happens(0.1)) yield* part(delivered);
      }
    },
  };
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}
