/**
 * The table of the kinds that a replica follows, and the watches they need. Pure.
 */
import type { PublicKind } from "../../model/kinds.ts";
import type { Resource } from "../../model/resource.ts";
import type { Entry } from "../datastore.ts";

/** The key prefix of a kind, and its decoder. */
export interface KindSource<Value> {
  readonly prefix: string;
  /** Returns `undefined` for a key that is not of this kind; throws for an unreadable record. */
  readonly decode: (entry: Entry) => Value | undefined;
  /** A write after which the value is equal to the former one is no change for consumers. Absent: each write is one. */
  readonly equalIsSame?: true;
}

/** Resources of a kind, each under its own key. */
export function sourceOf<R extends Resource>(kind: PublicKind<R>): KindSource<R> {
  return { prefix: kind.prefix(), decode: ({ key, value }) => kind.codec.read(value, key) };
}

/** `Values` maps the name of each kind to the type of its values. */
export type KindTable<Values> = { readonly [Kind in keyof Values]: KindSource<Values[Kind]> };

/**
 * "together": one watch over the path that the kinds share, so a snapshot of all of them has one revision.
 * "per kind": for a store whose revisions cannot be compared between kinds; then each kind has its own revision.
 */
export type WatchGrouping = "together" | "per kind";

/** The kinds that share one list and one watch. */
export interface FeedPlan {
  readonly watched: string;
  readonly kinds: ReadonlyMap<string, KindSource<unknown>>;
}

export function planFeeds<Values>(table: KindTable<Values>, grouping: WatchGrouping): readonly FeedPlan[] {
  const kinds: readonly [string, KindSource<unknown>][] = Object.entries(table);
  const prefixes = kinds.map(([, { prefix }]) => prefix);
  requireApart(prefixes);
  if (kinds.length === 0) return [];
  if (grouping === "together") return [{ watched: commonPrefix(prefixes), kinds: new Map(kinds) }];
  return kinds.map((kind) => ({ watched: kind[1].prefix, kinds: new Map([kind]) }));
}

/** Each key belongs to one kind at most. */
function requireApart(prefixes: readonly string[]): void {
  const sorted = prefixes.toSorted();
  const inside = sorted.findIndex((prefix, index) => index > 0 && prefix.startsWith(sorted[index - 1] ?? ""));
  if (inside === -1) return;
  throw new RangeError(
    `Cannot follow kinds whose keys overlap: "${sorted[inside]}" begins with "${sorted[inside - 1]}"`,
  );
}

/** The longest common path of all prefixes, up to a slash; a single prefix is returned as it is. */
function commonPrefix(prefixes: readonly string[]): string {
  const [first = "", ...others] = prefixes;
  if (others.length === 0) return first;
  const steps = first.split(/(?<=\/)/);
  while (steps.length > 0 && !others.every((other) => other.startsWith(steps.join("")))) steps.pop();
  return steps.join("");
}
