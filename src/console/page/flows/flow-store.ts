/**
 * The flows that the page has, each once: a flow that changes comes again with the same ID. So many that the oldest ones have to
 * go are dropped and counted.
 */
import type { FlowRecord } from "../../../flows/flow-record.ts";

const MOST_FLOWS = 100_000;

export type FlowOrder = "denied first" | "newest first";

interface Slot {
  record: FlowRecord;
}

export class FlowStore {
  /** The oldest first. */
  private slots: Slot[] = [];
  private readonly byId = new Map<string, Slot>();
  /** Were too many. */
  dropped = 0;

  constructor(readonly most = MOST_FLOWS) {}

  get size(): number {
    return this.slots.length;
  }

  add(records: readonly FlowRecord[]): void {
    let isSorted = true;
    for (const record of records) {
      const known = this.byId.get(record.id);
      if (known !== undefined) {
        known.record = record;
        continue;
      }
      const slot = { record };
      this.byId.set(record.id, slot);
      isSorted &&= (this.slots.at(-1)?.record.start ?? 0) <= record.start;
      this.slots.push(slot);
    }
    if (!isSorted) this.slots.sort((one, other) => one.record.start - other.record.start);
    this.dropOldest();
  }

  get(id: string): FlowRecord | undefined {
    return this.byId.get(id)?.record;
  }

  clear(): void {
    this.slots = [];
    this.byId.clear();
    this.dropped = 0;
  }

  /** The oldest first. */
  get records(): readonly FlowRecord[] {
    return this.slots.map(({ record }) => record);
  }

  rows(order: FlowOrder): readonly FlowRecord[] {
    const first: FlowRecord[] = [];
    const others: FlowRecord[] = [];
    for (let index = this.slots.length - 1; index >= 0; index--) {
      const record = this.slots[index]?.record;
      if (record === undefined) continue;
      (order === "denied first" && record.verdict === "denied" ? first : others).push(record);
    }
    return first.length === 0 ? others : first.concat(others);
  }

  private dropOldest(): void {
    const surplus = this.slots.length - this.most;
    if (surplus <= 0) return;
    for (const { record } of this.slots.splice(0, surplus)) this.byId.delete(record.id);
    this.dropped += surplus;
  }
}
