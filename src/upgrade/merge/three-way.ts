/**
 * Merges what a user has changed into what a release has changed.
 *
 *      base ──── the user's edits ────> live
 *        └────── the release's ───────> release
 *
 * What only one of them has changed, removals included, is as that one has it. What both have changed differently is a
 * conflict. Pure.
 */
import { isObject } from "../../model/shape.ts";
import { isSame } from "./canonical-json.ts";
import { parseJsonText, printJsonText } from "./json-text.ts";
import { byKey, type ListRule, listRule } from "./list-keys.ts";

/** What was installed is not known: every difference is a conflict. */
export const UNKNOWN_BASE: unique symbol = Symbol("unknown base");
type UnknownBase = typeof UNKNOWN_BASE;

export interface Versions {
  readonly base: unknown;
  readonly live: unknown;
  readonly release: unknown;
}

/** Absent values are absent there. */
export interface MergeConflict {
  /** `spec.template.spec.containers[vendor-node].resources` */
  readonly path: string;
  readonly base?: unknown;
  readonly live?: unknown;
  readonly release?: unknown;
}

export interface Merged {
  /** `undefined` if it is absent. */
  readonly value: unknown;
  readonly conflicts: readonly MergeConflict[];
}

/** Whether a value that is as it was installed may be an edit all the same: then it is a conflict with another one of the release. */
type IsPossibleEdit = (path: string, versions: Versions) => boolean;

/** In a conflict the value is the user's ("mine") or the release's ("theirs"). */
export function mergeThreeWay(versions: Versions, winner: "mine" | "theirs", isPossibleEdit?: IsPossibleEdit): Merged {
  const conflicts: MergeConflict[] = [];
  const merge = (given: Versions, place: Place): unknown => {
    const { base, live, release } = given;
    if (isSame(live, release)) return live;
    if (base !== UNKNOWN_BASE) {
      if (isSame(base, live) && isPossibleEdit === undefined) return release;
      if (isSame(base, release)) return live;
    }
    const structured = mergeStructure(given, place, merge);
    if (structured !== undefined) return structured.value;
    if (base !== UNKNOWN_BASE && isSame(base, live)) {
      if (!isPossibleEdit?.(place.path, given)) return release;
      conflicts.push(conflictOf({ ...given, base: UNKNOWN_BASE }, place));
      return winner === "mine" ? live : release;
    }
    if (live === undefined && place.rule?.doRemovalsStay && base !== UNKNOWN_BASE) return undefined;
    conflicts.push(conflictOf(given, place));
    return winner === "mine" ? live : release;
  };
  const value = merge(versions, { path: "", name: "" });
  return { value, conflicts };
}

interface Place {
  readonly path: string;
  /** Of the field. */
  readonly name: string;
  /** If it is an item of such a list. */
  readonly rule?: ListRule;
}

type Merge = (versions: Versions, place: Place) => unknown;

function mergeStructure(versions: Versions, place: Place, merge: Merge): { readonly value: unknown } | undefined {
  const { live, release } = versions;
  if (place.rule?.isItemAtomic) return undefined;
  if (isObject(live) && isObject(release)) return { value: mergeMembers(versions, place, merge) };
  if (Array.isArray(live) && Array.isArray(release)) {
    const lists: Lists = { live, release, base: listOf(versions.base) };
    const known = lists.base === UNKNOWN_BASE ? [] : lists.base;
    const rule = listRule(place.name, [live, release, known]);
    return rule && { value: mergeItems(lists, { place, rule, merge }) };
  }
  return mergeTexts(versions, place, merge);
}

function mergeMembers({ base, live, release }: Versions, place: Place, merge: Merge): object {
  const names = new Set([...Object.keys(asObject(release)), ...Object.keys(asObject(live))]);
  const members = [...names].map((name) => {
    const inner = { path: place.path === "" ? name : `${place.path}.${name}`, name };
    const of = (value: unknown) => asObject(value)[name];
    const value = merge({ base: base === UNKNOWN_BASE ? base : of(base), live: of(live), release: of(release) }, inner);
    return [name, value] as const;
  });
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}

interface Lists {
  readonly base: readonly unknown[] | UnknownBase;
  readonly live: readonly unknown[];
  readonly release: readonly unknown[];
}

interface ListMerge {
  readonly place: Place;
  readonly rule: ListRule;
  readonly merge: Merge;
}

function mergeItems({ base, live, release }: Lists, { place, rule, merge }: ListMerge): readonly unknown[] {
  const known = base === UNKNOWN_BASE ? [] : base;
  const [ofBase, ofLive, ofRelease] = [byKey(known, rule), byKey(live, rule), byKey(release, rule)];
  const order = mergedOrder({ base: [...ofBase.keys()], live: [...ofLive.keys()], release: [...ofRelease.keys()] });
  const items = order.map((key) => {
    const versions = {
      base: base === UNKNOWN_BASE ? base : ofBase.get(key),
      live: ofLive.get(key),
      release: ofRelease.get(key),
    };
    return merge(versions, { path: `${place.path}[${key}]`, name: "", rule });
  });
  return items.filter((item) => item !== undefined);
}

/** JSON inside a text is merged as such; a text that is not, as a whole. */
function mergeTexts({ base, live, release }: Versions, place: Place, merge: Merge) {
  const [mine, theirs] = [parseJsonText(live), parseJsonText(release)];
  if (mine === undefined || theirs === undefined) return undefined;
  const before = base === UNKNOWN_BASE ? base : parseJsonText(base);
  const value = merge({ base: before, live: mine, release: theirs }, place);
  // Only what had to be merged is printed again.
  if (isSame(value, mine)) return { value: live };
  return { value: isSame(value, theirs) ? release : printJsonText(value) };
}

function conflictOf({ base, live, release }: Versions, { path }: Place): MergeConflict {
  return {
    path,
    ...(base === undefined || base === UNKNOWN_BASE ? {} : { base }),
    ...(live === undefined ? {} : { live }),
    ...(release === undefined ? {} : { release }),
  };
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {};
}

function listOf(value: unknown): readonly unknown[] | UnknownBase {
  if (value === UNKNOWN_BASE) return UNKNOWN_BASE;
  return Array.isArray(value) ? value : [];
}

/**
 * The order of a merged list's items: that of the release, or that of the user, if the user has changed it. An item that is not
 * in it comes after the one that it follows in its own list. Pure.
 */
interface Orders {
  readonly base: readonly string[];
  readonly live: readonly string[];
  readonly release: readonly string[];
}

function mergedOrder({ base, live, release }: Orders): readonly string[] {
  const inLive = new Set(live);
  const inBase = new Set(base);
  const before = base.filter((key) => inLive.has(key));
  const after = live.filter((key) => inBase.has(key));
  const hasReordered = before.some((key, index) => key !== after[index]);
  return hasReordered ? withOthers(live, release) : withOthers(release, live);
}

function withOthers(first: readonly string[], others: readonly string[]): readonly string[] {
  const order = [...first];
  for (const [index, key] of others.entries()) {
    if (order.includes(key)) continue;
    const previous = index === 0 ? -1 : order.indexOf(others[index - 1] ?? "");
    order.splice(previous + 1, 0, key);
  }
  return order;
}
