/**
 * A kind whose values depend on more than their records: on what another program knows, or on records of other kinds.
 * Consumers of the replica see only the refined values.
 *
 *   KindUpdate of a feed ─┐
 *   refresh(keys) ────────┴─▶ refine(key, value) ─▶ KindUpdate of the refined values
 */
import type { KindUpdate } from "./feed-copy.ts";
import { type HeldRecord, KindSnapshot } from "./kind-snapshot.ts";

export interface Refinement<Value> {
  /** Nothing is published before. */
  readonly isReady: () => boolean;
  /** Returns the value itself if it is as it should be. `undefined`: the record was deleted, or is unreadable. */
  readonly refine: (key: string, value: Value | undefined) => Value | undefined;
}

export class RefinedKind {
  private given: KindSnapshot<unknown> | undefined;
  private made: KindSnapshot<unknown> = KindSnapshot.empty();
  private isPublished = false;

  constructor(
    private readonly kind: string,
    private readonly means: Refinement<unknown>,
  ) {}

  update({ snapshot, changed }: KindUpdate): KindUpdate | undefined {
    this.given = snapshot;
    return this.publish(changed);
  }

  /** These keys may have other refined values now, or the first ones can be published. */
  refresh(keys: Iterable<string>): KindUpdate | undefined {
    return this.publish(keys);
  }

  private publish(keys: Iterable<string>): KindUpdate | undefined {
    const { given, means } = this;
    if (given === undefined || !means.isReady()) return undefined;
    const changes = new Map<string, HeldRecord<unknown> | undefined>();
    for (const key of this.isPublished ? keys : given.keys()) {
      const held = this.refined(key, given.held(key));
      if (held !== this.made.held(key)) changes.set(key, held);
    }
    const isFirst = !this.isPublished;
    this.isPublished = true;
    if (!isFirst && changes.size === 0 && this.made.revision === given.revision) return undefined;
    this.made = this.made.with(given.revision, changes);
    return { kind: this.kind, snapshot: this.made, changed: [...changes.keys()] };
  }

  private refined(key: string, held: HeldRecord<unknown> | undefined): HeldRecord<unknown> | undefined {
    const value = this.means.refine(key, held?.kind === "readable" ? held.value : undefined);
    if (held?.kind !== "readable" || value === undefined || value === held.value) return held;
    const before = this.made.held(key);
    const isSame = before?.kind === "readable" && before.revision === held.revision && before.digest === held.digest;
    return isSame && Bun.deepEquals(before.value, value) ? before : { ...held, value };
  }
}
