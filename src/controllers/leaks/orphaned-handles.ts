/**
 * Handles that count addresses which no block has: an operation stopped half way, where records are written one at a time.
 * A GC of the runtime counts those of its own node again (ipam/plugin/gc.ts), if the runtime ever calls it.
 *
 *   a node is gone ──> after the grace period, when nothing of it is on the way any more: its handles are listed, once
 *   the first look ──> the same, for the handles of all nodes: nobody knows which have gone before
 *   from then on   ──> all of them now and then: a write may arrive long after its client gave up, and after the DEL
 *
 * One list of everything, by one process, is cheaper than one of each node: the API server reads all handles to find those
 * of one node.
 */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { pagesBelow } from "../../datastore/pages.ts";
import type { Allocator } from "../../ipam/allocator.ts";
import { countedBy, heldIn } from "../../ipam/handle-counts.ts";
import { isContinuous, type LookTime } from "../../ipam/leaks/unused-since.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import { HANDLES_PREFIX, parseKey } from "../../model/keys.ts";

export interface OrphanedHandlesOptions {
  readonly store: Datastore;
  readonly allocator: Pick<Allocator, "recountHandle">;
  /** Unless another writes by now; a record that cannot be read does not keep the others. */
  readonly each: (work: () => Promise<void>) => Promise<void>;
}

const EVERY_NODE = "";

/** A list is expensive, however short the grace period is. */
const SHORTEST_PAUSE = 10 * 60_000;

/** How long after a look at all handles the next one is, in milliseconds. */
export function pauseBetweenLists(graceMilliseconds: number): number {
  return Math.max(2 * graceMilliseconds, SHORTEST_PAUSE);
}

export class OrphanedHandles {
  /** By node, when its handles are looked at. */
  private readonly due = new Map<string, number>();
  private last: number | undefined;
  /** When all handles were listed, or could not be. */
  private listed = Number.NEGATIVE_INFINITY;

  constructor(private readonly means: OrphanedHandlesOptions) {}

  /** Without a grace period nothing is waited for. */
  expect(node: string, { now, graceMilliseconds }: LookTime): void {
    this.due.set(node, now + graceMilliseconds);
  }

  /** `blocks`: as a copy shows them, which may be old. What is written is counted in the datastore itself. */
  async look(blocks: readonly IPAMBlock[], time: LookTime): Promise<void> {
    if (this.means.store.atomicity !== "one object") return;
    const pause = pauseBetweenLists(time.graceMilliseconds);
    if (!isContinuous(this.last, time)) {
      this.due.set(EVERY_NODE, Math.max(time.now + time.graceMilliseconds, this.listed + pause));
    }
    this.last = time.now;
    const ready = [...this.due].filter(([, at]) => at <= time.now).map(([node]) => node);
    if (ready.length === 0) return;
    const isEveryNode = ready.includes(EVERY_NODE);
    // Before the work: a failure does not begin it again at every look.
    const next = time.now + pause;
    for (const node of ready) this.due.set(node, next);
    if (isEveryNode) this.listed = time.now;
    const held = heldIn(blocks);
    for (const node of isEveryNode ? [EVERY_NODE] : ready) await this.finish(node, held);
    // One that has gone again meanwhile is due at another time.
    for (const node of ready) if (node !== EVERY_NODE && this.due.get(node) === next) this.due.delete(node);
  }

  private async finish(node: string, held: ReadonlyMap<string, number>): Promise<void> {
    const { store, each } = this.means;
    for await (const { entries } of pagesBelow(store, HANDLES_PREFIX, node === EVERY_NODE ? {} : { node })) {
      for (const entry of entries) await each(() => this.count(entry, held));
    }
  }

  private async count(entry: Entry, held: ReadonlyMap<string, number>): Promise<void> {
    const parts = parseKey(entry.key);
    if (parts?.kind !== "handle") return;
    const { handleId: handle } = parts;
    const counted = countedBy(handle, entry);
    // One that counts nothing is left over as well.
    if (counted === 0 || counted > (held.get(handle) ?? 0)) await this.means.allocator.recountHandle({ handle });
  }
}
