/**
 * Who owns which fields of an object, and what an apply makes of it, as the orchestrator's API server does it. Pure.
 *
 * Fields that a manager applied before and does not apply any more go, unless somebody else owns them. Whoever changes the
 * value of a field owns it, and the former owners do not.
 */
import {
  changedFields,
  difference,
  type FieldSet,
  type Fields,
  fieldsOf,
  intersection,
  isEmpty,
  isFields,
  isItemized,
  itemStep,
  union,
} from "./field-sets.ts";

export interface Manager {
  readonly name: string;
  readonly apiVersion: string;
  readonly time: string;
  readonly subresource?: string;
}

interface Entry {
  readonly manager: string;
  readonly operation: "Apply" | "Update";
  readonly apiVersion: string;
  readonly subresource?: string;
  readonly time: string;
  readonly fieldsType: "FieldsV1";
  readonly fieldsV1: FieldSet;
}

export type ApplyOutcome =
  | { readonly kind: "applied"; readonly object: Fields }
  | { readonly kind: "conflict"; readonly managers: readonly string[] };

/** `before`: `undefined` if there is no such object. */
export function applyFields(
  before: Fields | undefined,
  applied: Fields,
  { manager, isForced }: { readonly manager: Manager; readonly isForced: boolean },
): ApplyOutcome {
  const own = (entry: Entry) => entry.manager === manager.name && entry.operation === "Apply";
  const entries = entriesOf(before);
  const others = entries.filter((entry) => !own(entry));
  const set = ownable(fieldsOf(applied));
  const changed = intersection(ownable(changedFields(before ?? {}, applied)), set);
  const inConflict = others.filter(({ fieldsV1 }) => !isEmpty(intersection(fieldsV1, changed)));
  if (inConflict.length > 0 && !isForced) {
    return { kind: "conflict", managers: inConflict.map((entry) => entry.manager) };
  }
  const left = withoutFields(others, changed);
  const owned = left.reduce<FieldSet>((all, { fieldsV1 }) => union(all, fieldsV1), {});
  const former = entries.find(own)?.fieldsV1 ?? {};
  const removed = difference(difference(former, set), owned);
  const merged = removeFields(mergeFields(before ?? {}, applied), removed, owned) as Fields;
  const entry = entryOf(manager, "Apply", set);
  const kept = entries.find(own);
  const isSame = kept !== undefined && Bun.deepEquals(kept.fieldsV1, set) && isEmpty(changed);
  return { kind: "applied", object: withEntries(merged, [...left, isSame ? kept : entry]) };
}

/** After a write that is not an apply. */
export function trackUpdate(before: Fields | undefined, after: Fields, manager: Manager): Fields {
  const given = entriesOf(after);
  const entries = given.length > 0 ? given : entriesOf(before);
  const [old, now] = [contentOf(before ?? {}), contentOf(after)];
  const changed = ownable(changedFields(old, now));
  const gone = difference(ownable(fieldsOf(old)), ownable(fieldsOf(now)));
  if (before !== undefined && isEmpty(changed) && isEmpty(gone)) return withEntries(after, entries);
  const own = (entry: Entry) =>
    entry.manager === manager.name && entry.operation === "Update" && entry.subresource === manager.subresource;
  const former = entries.find(own)?.fieldsV1 ?? {};
  const set = difference(union(former, changed), gone);
  const others = withoutFields(
    entries.filter((entry) => !own(entry)),
    union(changed, gone),
  );
  return withEntries(after, isEmpty(set) ? others : [...others, entryOf(manager, "Update", set)]);
}

function entryOf({ name, ...manager }: Manager, operation: Entry["operation"], fieldsV1: FieldSet): Entry {
  return { manager: name, operation, ...manager, fieldsType: "FieldsV1", fieldsV1 };
}

function withoutFields(entries: readonly Entry[], fields: FieldSet): readonly Entry[] {
  return entries.flatMap((entry) => {
    const fieldsV1 = difference(entry.fieldsV1, fields);
    if (isEmpty(fieldsV1)) return [];
    return [Bun.deepEquals(fieldsV1, entry.fieldsV1) ? entry : { ...entry, fieldsV1 }];
  });
}

function entriesOf(object: Fields | undefined): readonly Entry[] {
  const metadata = object?.["metadata"];
  const entries = isFields(metadata) ? metadata["managedFields"] : undefined;
  return Array.isArray(entries) ? entries : [];
}

function withEntries(object: Fields, entries: readonly Entry[]): Fields {
  return { ...object, metadata: { ...Object(object["metadata"]), managedFields: entries } };
}

const OF_SERVER = [
  "name",
  "namespace",
  "uid",
  "resourceVersion",
  "creationTimestamp",
  "generation",
  "managedFields",
  "deletionTimestamp",
];

function contentOf({ metadata, ...object }: Fields): Fields {
  const kept = Object.entries(Object(metadata)).filter(([name]) => !OF_SERVER.includes(name));
  return { ...object, metadata: Object.fromEntries(kept) };
}

/** Without what nobody owns. */
function ownable({ "f:apiVersion": _, "f:kind": __, "f:metadata": metadata, ...set }: FieldSet): FieldSet {
  const kept = Object.entries(metadata ?? {}).filter(([name]) => !OF_SERVER.includes(name.slice(2)));
  return kept.length === 0 ? set : { ...set, "f:metadata": Object.fromEntries(kept) };
}

function mergeFields(before: unknown, after: unknown, name = ""): unknown {
  if (isFields(before) && isFields(after)) {
    const merged: Record<string, unknown> = { ...before };
    for (const [field, inner] of Object.entries(after)) merged[field] = mergeFields(before[field], inner, field);
    return merged;
  }
  if (!isItemized(before, name) || !isItemized(after, name)) return after;
  const given = new Map(after.map((item) => [itemStep(item, name), item]));
  const known = new Map(before.map((item) => [itemStep(item, name), item]));
  const steps = [...given.keys(), ...[...known.keys()].filter((step) => !given.has(step))];
  return steps.map((step) => (given.has(step) ? mergeFields(known.get(step), given.get(step)) : known.get(step)));
}

/** An item goes as a whole if nobody owns anything of it. */
function removeFields(value: unknown, removed: FieldSet, owned: FieldSet, name = ""): unknown {
  if (isFields(value)) {
    return Object.fromEntries(
      Object.entries(value).flatMap(([field, inner]) => {
        const [step, set] = [`f:${field}`, removed[`f:${field}`]];
        if (set === undefined) return [[field, inner]];
        if (isEmpty(set)) return [];
        const left = removeFields(inner, set, owned[step] ?? {}, field);
        // Emptied by this: a map or a list that nobody owns is not kept.
        return isHollow(left) && !isHollow(inner) && owned[step] === undefined ? [] : [[field, left]];
      }),
    );
  }
  if (!isItemized(value, name)) return value;
  return value.flatMap((item) => {
    const step = itemStep(item, name);
    const set = removed[step];
    if (set === undefined) return [item];
    if (owned[step] === undefined && (isEmpty(set) || "." in set)) return [];
    return [removeFields(item, set, owned[step] ?? {})];
  });
}

function isHollow(value: unknown): boolean {
  return Array.isArray(value) ? value.length === 0 : isFields(value) && Object.keys(value).length === 0;
}
