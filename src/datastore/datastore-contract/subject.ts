/** Shared by the parts of the contract: the subject, and shortcuts to use a store. */
import { expect } from "bun:test";
import type { Datastore, DatastoreEvent, Entry } from "../datastore.ts";

/** An empty datastore to test, and what the suite must be able to do to it from outside. */
export interface Subject {
  readonly store: Datastore;
  /** A second connection to the same data. */
  readonly another: () => Promise<Datastore>;
  /** Makes the store discard its history up to now. */
  readonly forgetHistory: () => Promise<void>;
  readonly dispose: () => Promise<void>;
}

/** Whose revision a store returns if nothing was listed or written. */
export type Revisions = "of the store" | "of each object";

export const LIMIT_MILLISECONDS = 20_000;

/** Writes, and expects it to succeed. */
export async function put(store: Datastore, key: string, value: string): Promise<void> {
  expect((await store.commit([{ kind: "put", key, value }])).ok).toBe(true);
}

export async function readKey(store: Datastore, key: string): Promise<Entry | undefined> {
  return (await store.read([{ kind: "key", key }])).answers[0]?.[0];
}

/** Returns the error of a rejected promise. (`expect().rejects` waits in a way that blocks HTTP/2.) */
export function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

export function limited(store: Datastore, prefix: string, from: string): AsyncIterable<DatastoreEvent> {
  return store.watch(prefix, from, AbortSignal.timeout(LIMIT_MILLISECONDS));
}

/** The next events of a watch, bookmarks left out. */
export async function collect(
  store: Datastore,
  prefix: string,
  from: string,
  count: number,
): Promise<DatastoreEvent[]> {
  const events: DatastoreEvent[] = [];
  for await (const event of limited(store, prefix, from)) {
    if (event.kind !== "bookmark") events.push(event);
    if (events.length === count) break;
  }
  return events;
}

export function describeEvent(event: DatastoreEvent): string {
  if (event.kind === "put") return `put ${event.entry.key} ${event.entry.value}`;
  return event.kind === "delete" ? `delete ${event.key}` : `bookmark ${event.revision}`;
}
