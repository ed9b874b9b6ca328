/**
 * Sets of fields as `metadata.managedFields` has them: trees of names. `f:name` is a field, `k:{…}` an item of a list by its
 * keys, `v:…` an item of a set, `.` the item itself. A field without fields below it is a leaf. Pure.
 */
export type Fields = Readonly<Record<string, unknown>>;
export interface FieldSet {
  readonly [step: string]: FieldSet;
}

const NOTHING: FieldSet = {};

/** The keys of the lists whose items have some, by the name of the list; every other list is one value. */
const LIST_KEYS: Readonly<Record<string, readonly string[]>> = {
  containers: ["name"],
  initContainers: ["name"],
  volumes: ["name"],
  env: ["name"],
  volumeMounts: ["mountPath"],
  imagePullSecrets: ["name"],
  secrets: ["name"],
  conditions: ["type"],
  ownerReferences: ["uid"],
};
const SETS = new Set(["finalizers"]);
const PORT_KEYS = ["containerPort", "port"];

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `name`: of the field that has the value. */
export function fieldsOf(value: unknown, name = ""): FieldSet {
  if (isFields(value)) {
    return Object.fromEntries(Object.entries(value).map(([field, inner]) => [`f:${field}`, fieldsOf(inner, field)]));
  }
  if (!isItemized(value, name)) return NOTHING;
  return Object.fromEntries(
    value.map((item) => {
      const step = itemStep(item, name);
      return [step, step.startsWith("v:") ? NOTHING : { ".": NOTHING, ...fieldsOf(item) }];
    }),
  );
}

/** Whether the items of the list are fields of their own. */
export function isItemized(value: unknown, name: string): value is readonly unknown[] {
  if (!Array.isArray(value)) return false;
  if (SETS.has(name)) return true;
  return value.length > 0 && value.every((item) => isFields(item) && keysOf(item, name) !== undefined);
}

/** What the item is called in a set of fields. */
export function itemStep(item: unknown, name: string): string {
  if (SETS.has(name) || !isFields(item)) return `v:${JSON.stringify(item)}`;
  return `k:${JSON.stringify(keysOf(item, name) ?? {})}`;
}

function keysOf(item: Fields, name: string): Fields | undefined {
  const keys = LIST_KEYS[name] ?? (name === "ports" ? PORT_KEYS.filter((key) => key in item).slice(0, 1) : []);
  if (keys.length === 0 || !keys.every((key) => key in item)) return undefined;
  const protocol = name === "ports" ? { protocol: item["protocol"] ?? "TCP" } : {};
  return { ...Object.fromEntries(keys.map((key) => [key, item[key]])), ...protocol };
}

export function union(one: FieldSet, other: FieldSet): FieldSet {
  const all: Record<string, FieldSet> = { ...one };
  for (const [step, inner] of Object.entries(other))
    all[step] = step in one ? union(one[step] ?? NOTHING, inner) : inner;
  return all;
}

/** Leaves that only the first one has. */
export function difference(one: FieldSet, other: FieldSet): FieldSet {
  return Object.fromEntries(
    Object.entries(one).flatMap(([step, inner]) => {
      const found = other[step];
      if (found === undefined) return [[step, inner]];
      const left = difference(inner, found);
      return isEmpty(left) ? [] : [[step, left]];
    }),
  );
}

/** Leaves that both have. */
export function intersection(one: FieldSet, other: FieldSet): FieldSet {
  return Object.fromEntries(
    Object.entries(one).flatMap(([step, inner]) => {
      const found = other[step];
      if (found === undefined) return [];
      if (isEmpty(inner) && isEmpty(found)) return [[step, NOTHING]];
      const both = intersection(inner, found);
      return isEmpty(both) ? [] : [[step, both]];
    }),
  );
}

export function isEmpty(set: FieldSet): boolean {
  return Object.keys(set).length === 0;
}

/** The leaves of `after` whose values are others in `before`, or absent. */
export function changedFields(before: unknown, after: unknown, name = ""): FieldSet {
  if (Bun.deepEquals(before, after)) return NOTHING;
  if (isFields(after)) {
    const known = isFields(before) ? before : {};
    return Object.fromEntries(
      Object.entries(after).flatMap(([field, inner]) => {
        if (field in known && Bun.deepEquals(known[field], inner)) return [];
        return changedStep(
          `f:${field}`,
          field in known ? changedFields(known[field], inner, field) : fieldsOf(inner, field),
          isLeaf(inner, field),
        );
      }),
    );
  }
  if (!isItemized(after, name)) return NOTHING;
  const known = new Map(isItemized(before, name) ? before.map((item) => [itemStep(item, name), item]) : []);
  return Object.fromEntries(
    after.flatMap((item) => {
      const step = itemStep(item, name);
      if (!known.has(step)) return [[step, step.startsWith("v:") ? NOTHING : { ".": NOTHING, ...fieldsOf(item) }]];
      return Bun.deepEquals(known.get(step), item)
        ? []
        : changedStep(step, changedFields(known.get(step), item), false);
    }),
  );
}

/** A field with others below it that has no changed one is unchanged: only what is not looked at differs. */
function changedStep(step: string, set: FieldSet, isOne: boolean): readonly [string, FieldSet][] {
  return isEmpty(set) && !isOne ? [] : [[step, set]];
}

function isLeaf(value: unknown, name: string): boolean {
  return isEmpty(fieldsOf(value, name));
}
