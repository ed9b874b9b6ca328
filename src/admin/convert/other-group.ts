/**
 * Resources of the product under another name: their API group is another, and so are the labels and annotations that
 * begin with it; all else is the same. Also those that former releases stored (`crd.GROUP/v1`). Pure.
 */
import { API_VERSION, identity, PRODUCT_API } from "../../identity.ts";
import { findKind } from "../../model/kinds.ts";
import { isObject } from "../../model/shape.ts";
import { kindWithAlias } from "../kinds/aliases.ts";
import { ADMIN_KINDS } from "../kinds/kinds.ts";
import type { Fields } from "./field-reader.ts";

const OTHER_GROUP = /^(?:([a-z0-9.-]+)\/v3|crd\.([a-z0-9.-]+)\/v1)$/;

/** For the refusal of such a resource. */
export const OTHER_GROUP_HINT = `; a resource of another API group can be converted: ${identity.adminTool} convert`;

/** `undefined` if the resource is not one of another group. */
export function otherGroupOf({ apiVersion, kind }: Fields): string | undefined {
  if (typeof apiVersion !== "string" || apiVersion === API_VERSION || typeof kind !== "string") return undefined;
  const [, current, former] = OTHER_GROUP.exec(apiVersion) ?? [];
  return kindIn(kind) === undefined ? undefined : (current ?? former);
}

/** As it can be created here: without what another datastore assigned. */
export function convertOtherGroup(value: Fields, group: string): Fields {
  const renamed = rename(value, `${group}/`, `${PRODUCT_API.group}/`);
  const { metadata, ...rest } = isObject(renamed) ? renamed : {};
  const own = isObject(metadata) ? Object.entries(metadata).filter(([field]) => !ASSIGNED.has(field)) : [];
  return { ...rest, apiVersion: API_VERSION, kind: kindIn(String(value["kind"])), metadata: Object.fromEntries(own) };
}

const ASSIGNED: ReadonlySet<string> = new Set([
  ...["resourceVersion", "uid", "creationTimestamp", "generation", "managedFields", "selfLink"],
]);

function kindIn(kind: string): string | undefined {
  return (findKind(ADMIN_KINDS, kind) ?? kindWithAlias(kind))?.kind;
}

/** In selectors, labels and annotations: in every text and in every name of a field. */
function rename(value: unknown, from: string, to: string): unknown {
  if (typeof value === "string") return value.replaceAll(from, to);
  if (Array.isArray(value)) return value.map((each) => rename(each, from, to));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name.replaceAll(from, to), rename(each, from, to)]),
  );
}
