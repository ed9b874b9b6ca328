/**
 * The kernel sets of long lists of ports and networks in rules: one for each content, shared by all rules with the same
 * list. A changed list is another set, so that the content of a set never changes while rules look it up.
 */
import { type RangeList, rangeSetName } from "../table/names.ts";
import type { TableBuilder } from "../table/table-builder.ts";
import { elementsOfRanges } from "./range-elements.ts";

export class RangeSets {
  private readonly uses = new Map<string, number>();

  constructor(private readonly table: TableBuilder) {}

  /** Returns the name of the set. The caller releases it when no rule of it refers to the list any more. */
  retain(list: RangeList): string {
    const name = rangeSetName(list);
    const uses = this.uses.get(name) ?? 0;
    this.uses.set(name, uses + 1);
    if (uses > 0) return name;
    this.table.createSet({ name, key: [list.key], holdsIntervals: true });
    for (const [identity, element] of elementsOfRanges(list.ranges)) this.table.putElement(name, identity, element);
    return name;
  }

  release(name: string): void {
    const uses = (this.uses.get(name) ?? 0) - 1;
    if (uses > 0) this.uses.set(name, uses);
    else if (this.uses.delete(name)) this.table.deleteSet(name);
  }
}
