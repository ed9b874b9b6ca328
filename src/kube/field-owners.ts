/**
 * Which manager owns which fields of an object (`metadata.managedFields`). Server-side apply removes a field that is applied
 * no more only if nobody else owns it, so what an earlier tool wrote is given to the tool that applies from now on. Pure.
 */
import { isObject } from "../model/shape.ts";

type Fields = Readonly<Record<string, unknown>>;

export interface FieldsEntry {
  readonly manager?: string;
  readonly operation?: string;
  readonly apiVersion?: string;
  readonly subresource?: string;
  readonly fieldsV1?: unknown;
}

export interface TakeOver {
  /** Who applies the object from now on. */
  readonly manager: string;
  /** Whose fields are taken; entries of subresources never are. */
  readonly isTaken: (entry: FieldsEntry) => boolean;
  /** "left": labels, annotations and owners stay with those who set them. "last-applied": except for what kubectl applied last, which is removed. */
  readonly metadata: "taken" | "left" | "last-applied";
  /** Other fields that stay with those who set them: `secrets`. */
  readonly left?: readonly string[];
}

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/** What a manifest is applied or created as; edits by hand have other managers, such as `kubectl-edit`. */
export function isOfKubectl({ manager = "" }: FieldsEntry): boolean {
  return ["kubectl-client-side-apply", "kubectl-create", "kubectl", "before-first-apply"].includes(manager);
}

/** A JSON patch that fails if the object has changed since it was read; empty if there is nothing to take. */
export function takeOverPatch(object: Fields, takeOver: TakeOver): readonly object[] {
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  const before = entriesIn(metadata);
  const after = withTakenFields(before, takeOver, String(object["apiVersion"] ?? ""));
  const hasAnnotation = takeOver.metadata !== "left" && LAST_APPLIED in Object(metadata["annotations"] ?? {});
  if (after === undefined && !hasAnnotation) return [];
  return [
    { op: "test", path: "/metadata/resourceVersion", value: metadata["resourceVersion"] },
    ...(after === undefined ? [] : [{ op: "replace", path: "/metadata/managedFields", value: after }]),
    ...(hasAnnotation ? [{ op: "remove", path: `/metadata/annotations/${LAST_APPLIED.replace("/", "~1")}` }] : []),
  ];
}

/** Whether the object has been taken over, or applied, by the manager since it was as `before`. */
export function isTakenSince(before: Fields, object: Fields, manager: string): boolean {
  const [then, now] = [before, object].map(({ metadata }) => (isObject(metadata) ? metadata : {}));
  const isApplier = (metadata: Fields = {}) =>
    entriesIn(metadata).some((entry) => entry.manager === manager && entry.operation === "Apply");
  const hasAnnotation = (metadata: Fields = {}) => LAST_APPLIED in Object(metadata["annotations"] ?? {});
  return (isApplier(now) && !isApplier(then)) || (hasAnnotation(then) && !hasAnnotation(now));
}

/** Fields that go when `wanted` is applied after the patch: only the former managers have them. As `.spec.template.spec.volumes[name="a"]`. */
export function removedByTakeOver(object: Fields, takeOver: TakeOver, wanted: object): readonly string[] {
  const entries = entriesIn(isObject(object["metadata"]) ? object["metadata"] : {});
  const isTaken = (entry: FieldsEntry) => entry.subresource === undefined && takeOver.isTaken(entry);
  const [taken, others] = [entries.filter(isTaken), entries.filter((entry) => !isTaken(entry))].map((part) =>
    part.reduce<Fields>((all, { fieldsV1 }) => union(all, fieldsV1), {}),
  );
  const fields = partsOf(taken, takeOver).taken;
  return removedBelow(fields, { wanted, others, path: "" });
}

interface Level {
  readonly wanted: unknown;
  /** Fields that somebody else owns too. */
  readonly others: unknown;
  readonly path: string;
}

function removedBelow(fields: Fields, { wanted, others, path }: Level): readonly string[] {
  return Object.entries(fields).flatMap(([name, inner]) => {
    const member = name === "." ? undefined : memberOf(wanted, name);
    if (member === undefined) return [];
    const other = isObject(others) ? others[name] : undefined;
    if (member.value !== undefined) {
      return removedBelow(isObject(inner) ? inner : {}, {
        wanted: member.value,
        others: other,
        path: path + member.path,
      });
    }
    return other === undefined ? [path + member.path] : [];
  });
}

/** `f:name`: a field; `k:{…}`: a member of a list by its keys; `v:…`: a member of a set. Absent: not a field. */
function memberOf(wanted: unknown, name: string): { readonly value: unknown; readonly path: string } | undefined {
  const text = name.slice(2);
  if (name.startsWith("f:")) return { value: isObject(wanted) ? wanted[text] : undefined, path: `.${text}` };
  const list: readonly unknown[] = Array.isArray(wanted) ? wanted : [];
  if (name.startsWith("v:")) {
    return { value: list.find((each) => JSON.stringify(each) === text), path: `[=${text}]` };
  }
  if (!name.startsWith("k:")) return undefined;
  const keys = Object.entries(Object(JSON.parse(text)));
  const isMeant = (each: unknown) =>
    isObject(each) && keys.every(([key, value]) => (each[key] ?? KEY_DEFAULTS[key]) === value);
  const path = `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(",")}]`;
  return { value: list.find(isMeant), path };
}

/** Of keys that objects may leave out. */
const KEY_DEFAULTS: Readonly<Record<string, unknown>> = { protocol: "TCP" };

/** `undefined` if nobody else has a field that is taken. */
function withTakenFields(
  entries: readonly FieldsEntry[],
  takeOver: TakeOver,
  apiVersion: string,
): readonly FieldsEntry[] | undefined {
  const isOwn = (entry: FieldsEntry) =>
    entry.manager === takeOver.manager && entry.operation === "Apply" && entry.subresource === undefined;
  const isTaken = (entry: FieldsEntry) =>
    !isOwn(entry) && entry.subresource === undefined && entry.apiVersion === apiVersion && takeOver.isTaken(entry);
  const taken = entries.filter(isTaken).map(({ fieldsV1 }) => partsOf(fieldsV1, takeOver).taken);
  if (taken.every((fields) => Object.keys(fields).length === 0)) return undefined;
  const own = entries.find(isOwn);
  const fieldsV1 = [own?.fieldsV1, ...taken].reduce<Fields>((all, more) => union(all, more), {});
  const others = entries
    .filter((entry) => !isOwn(entry))
    .flatMap((entry) => {
      if (!isTaken(entry)) return [entry];
      const { left } = partsOf(entry.fieldsV1, takeOver);
      return Object.keys(left).length === 0 ? [] : [{ ...entry, fieldsV1: left }];
    });
  return [
    ...others,
    {
      ...own,
      manager: takeOver.manager,
      operation: "Apply",
      apiVersion,
      fieldsType: "FieldsV1",
      fieldsV1,
    } as FieldsEntry,
  ];
}

function entriesIn(metadata: Fields): readonly FieldsEntry[] {
  const entries = metadata["managedFields"];
  return Array.isArray(entries) ? entries.filter(isObject) : [];
}

/** What controllers report is never taken. */
function partsOf(
  fieldsV1: unknown,
  { metadata, left = [] }: TakeOver,
): { readonly taken: Fields; readonly left: Fields } {
  const { "f:metadata": own, ...fields } = isObject(fieldsV1) ? fieldsV1 : {};
  const names = ["status", ...left].map((name) => `f:${name}`);
  const [staying, taken] = [true, false].map((isLeft) =>
    Object.fromEntries(Object.entries(fields).filter(([name]) => names.includes(name) === isLeft)),
  );
  const rest = own === undefined || metadata === "left" ? own : withoutLastApplied(own);
  const members = rest === undefined || Object.keys(Object(rest)).length === 0 ? {} : { "f:metadata": rest };
  return {
    taken: { ...taken, ...(metadata === "taken" ? members : {}) },
    left: { ...(metadata === "taken" ? {} : members), ...staying },
  };
}

function withoutLastApplied(metadata: unknown): Fields {
  const { "f:annotations": annotations, ...others } = isObject(metadata) ? metadata : {};
  if (!isObject(annotations)) return others;
  const { [`f:${LAST_APPLIED}`]: _, ...kept } = annotations;
  const isEmpty = Object.keys(kept).every((name) => name === ".");
  return isEmpty ? others : { ...others, "f:annotations": kept };
}

/** Sets of fields are trees of their names. */
function union(one: unknown, other: unknown): Fields {
  const all: Record<string, unknown> = isObject(one) ? { ...one } : {};
  for (const [name, inner] of Object.entries(isObject(other) ? other : {})) {
    all[name] = name in all ? union(all[name], inner) : inner;
  }
  return all;
}
