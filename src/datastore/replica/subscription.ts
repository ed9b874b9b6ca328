/**
 * What one consumer has not seen yet. It stores which keys changed, not the
 * changes themselves: a slow consumer gets one merged update, and a record that
 * was created and deleted in the meantime is not reported.
 */
import type { PluginError } from "../../errors.ts";
import type { KindUpdate } from "./feed-copy.ts";
import { type HeldRecord, KindSnapshot } from "./kind-snapshot.ts";

/** `previous`: the value that the consumer saw last, if the record existed and was readable. */
export type RecordChange<Value> =
  | { readonly kind: "put"; readonly key: string; readonly value: Value; readonly previous: Value | undefined }
  | { readonly kind: "delete"; readonly key: string; readonly previous: Value | undefined }
  /** The record exists but is unreadable, so it is not among the values of the snapshot. */
  | {
      readonly kind: "unreadable";
      readonly key: string;
      readonly failure: PluginError;
      readonly previous: Value | undefined;
    };

interface KindNews {
  seen: KindSnapshot<unknown>;
  now: KindSnapshot<unknown>;
  readonly changed: Set<string>;
}

export class Subscription {
  private readonly kinds: ReadonlyMap<string, KindNews>;
  /** The first update is always due, even if there are no records. */
  private hasNews = true;

  constructor(current: ReadonlyMap<string, KindSnapshot<unknown>>) {
    this.kinds = new Map(
      Array.from(current, ([kind, now]) => [kind, { seen: KindSnapshot.empty(), now, changed: new Set(now.keys()) }]),
    );
  }

  get isDue(): boolean {
    return this.hasNews;
  }

  add({ kind, snapshot, changed }: KindUpdate): void {
    const news = this.kinds.get(kind);
    if (news === undefined) return;
    news.now = snapshot;
    for (const key of changed) {
      if (news.seen.held(key) === snapshot.held(key)) news.changed.delete(key);
      else news.changed.add(key);
    }
    if (news.changed.size > 0) this.hasNews = true;
  }

  /** The changes of each kind since the last call. */
  take(): ReadonlyMap<string, readonly RecordChange<unknown>[]> {
    this.hasNews = false;
    return new Map(
      Array.from(this.kinds, ([kind, news]) => {
        const changes = Array.from(news.changed, (key) => changeOf(key, news.now.held(key), news.seen.get(key)));
        news.seen = news.now;
        news.changed.clear();
        return [kind, changes];
      }),
    );
  }
}

function changeOf(key: string, held: HeldRecord<unknown> | undefined, previous: unknown): RecordChange<unknown> {
  if (held === undefined) return { kind: "delete", key, previous };
  return held.kind === "readable"
    ? { kind: "put", key, value: held.value, previous }
    : { kind: "unreadable", key, failure: held.failure, previous };
}
