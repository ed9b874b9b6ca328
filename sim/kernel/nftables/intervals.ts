/** When a new element of a set with intervals conflicts with those that are there, as the kernel decides it. Pure. */

import { typeLength } from "../../../src/linux/nftables/data-type.ts";
import type { NftElement } from "../../../src/linux/nftables/set.ts";
import { placeOf } from "./ordered-keys.ts";
import type { ModelSet } from "./state.ts";

export type Conflict =
  | { readonly kind: "same"; readonly element: NftElement }
  | { readonly kind: "overlap" }
  /** It is there, and nobody wants to know. */
  | { readonly kind: "ignored" };

/** Which existing beginning of a range the batch named last, in each set: its end must follow. */
export type NamedBeginnings = Map<ModelSet, NftElement>;

/**
 * Each end of a range is an element of its own, so only the nearest neighbours are compared: two beginnings, or two ends, one
 * after another. A range with an end that exists is a conflict only if its beginning exists too and has another end.
 */
export function conflictOfEnd(set: ModelSet, added: NftElement, named: NamedBeginnings): Conflict | undefined {
  const { above, below, upper } = neighbours(set.ordered, added);
  const isBeginning = added.interval !== "end";
  if (isBeginning || isNull(added)) named.delete(set);
  if (above !== undefined && isSameEnd(above, added)) {
    named.set(set, above);
    return { kind: "same", element: above };
  }
  if (below !== undefined && isSameEnd(below, added)) {
    if (isNull(added)) return { kind: "ignored" };
    const beginning = named.get(set);
    named.delete(set);
    const isOther = beginning !== undefined && beginning !== set.ordered[placeOf(set.ordered, below) + 1];
    return isOther ? { kind: "overlap" } : { kind: "same", element: below };
  }
  if (below !== undefined && below.interval !== "end" && isBeginning) {
    // Adjacent ranges of an anonymous set have no end of their own.
    if (!set.isAnonymous || upper?.interval === "end") return { kind: "overlap" };
  }
  if (below?.interval === "end" && !isBeginning) return { kind: "overlap" };
  if (above?.interval === "end" && !isBeginning) return { kind: "overlap" };
  return undefined;
}

/** Whether an end may be deleted: only that of the beginning that was deleted just before, if one was. */
export function isEndOfDeleted(set: ModelSet, end: NftElement, named: NamedBeginnings): boolean {
  const beginning = named.get(set);
  named.delete(set);
  if (beginning === undefined) return true;
  const next = set.ordered[placeOf(set.ordered, end) + 1];
  return isLess(beginning, end) && (next === undefined || isLess(next, beginning));
}

function isLess(left: NftElement, right: NftElement): boolean {
  return placeOf([left], right) === 0 && !isSameEnd(left, right);
}

/** Programs begin a set with the end of a range that contains nothing. */
export function isNull({ key, interval }: NftElement): boolean {
  return interval === "end" && key.every((byte) => byte === 0);
}

interface Neighbours {
  /** The least that is not less than the element. */
  readonly above?: NftElement | undefined;
  /** The greatest that is not greater. */
  readonly below?: NftElement | undefined;
  /** The one after `below`. */
  readonly upper?: NftElement | undefined;
}

function neighbours(ordered: readonly NftElement[], added: NftElement): Neighbours {
  let above: NftElement | undefined;
  // One before the place is greater; those with the same key follow.
  const start = Math.max(0, placeOf(ordered, { key: added.key }) - 1);
  for (let index = start; index < ordered.length; index++) {
    const other = ordered[index];
    if (other === undefined) break;
    const order = Buffer.compare(other.key, added.key);
    if (order < 0) return { above, below: other, upper: ordered[index - 1] };
    if (order === 0 && other.interval === "end") return { above, below: other, upper: ordered[index - 1] };
    above = other;
  }
  return { above };
}

function isSameEnd(left: NftElement, right: NftElement): boolean {
  return Buffer.compare(left.key, right.key) === 0 && (left.interval === "end") === (right.interval === "end");
}

/** Of concatenations: the kernel looks whether the first or the last key is in another range, nothing else. */
export function conflictOfRange(set: ModelSet, added: NftElement): Conflict | undefined {
  const last = added.keyEnd ?? added.key;
  const first = rangeWith(set, added.key);
  if (first !== undefined) {
    const isSame = Buffer.compare(first.key, added.key) === 0 && Buffer.compare(first.keyEnd ?? first.key, last) === 0;
    return isSame ? { kind: "same", element: first } : { kind: "overlap" };
  }
  return rangeWith(set, last) === undefined ? undefined : { kind: "overlap" };
}

/** The range of a set of concatenations that contains the key: field by field. */
export function rangeWith(set: ModelSet, key: Uint8Array): NftElement | undefined {
  for (const element of set.elements.values()) if (containsFields(set, element, key)) return element;
  return undefined;
}

function containsFields(set: ModelSet, element: NftElement, key: Uint8Array): boolean {
  const last = element.keyEnd ?? element.key;
  return fieldsOf(set).every(
    ({ start, end }) =>
      Buffer.compare(key.subarray(start, end), element.key.subarray(start, end)) >= 0 &&
      Buffer.compare(key.subarray(start, end), last.subarray(start, end)) <= 0,
  );
}

/** Whether each field of the first key is at most that of the last. */
export function isRange(set: ModelSet, { key, keyEnd = key }: NftElement): boolean {
  return fieldsOf(set).every(
    ({ start, end }) => Buffer.compare(key.subarray(start, end), keyEnd.subarray(start, end)) <= 0,
  );
}

function fieldsOf({ set: { key } }: ModelSet): readonly { readonly start: number; readonly end: number }[] {
  let next = 0;
  return key.map((field) => {
    const start = next;
    next += (typeLength([field]) + 3) & ~3;
    return { start, end: start + typeLength([field]) };
  });
}

/** The range that contains the key, in a set with ordered keys: its beginning. */
export function beginningOf({ ordered }: Pick<ModelSet, "ordered">, key: Uint8Array): NftElement | undefined {
  const found = ordered[placeOf(ordered, { key })];
  return found?.interval === "end" ? undefined : found;
}
