/**
 * Resources of the product under another name: their API group is another, and so are the domains of their labels and
 * annotations; all else is the same. Also those that former releases stored (`crd.GROUP/v1`). Pure.
 */
import { API_VERSION, identity } from "../../identity.ts";
import { findKind } from "../../model/kinds.ts";
import { isObject } from "../../model/shape.ts";
import { FORMER_UID } from "../../upgrade/former-names.ts";
import { copiedMetadata } from "../../upgrade/former-storage/former-object.ts";
import { kindWithAlias } from "../kinds/aliases.ts";
import { ADMIN_KINDS } from "../kinds/kinds.ts";

export type Fields = Readonly<Record<string, unknown>>;

const OTHER_GROUP = /^(?:([a-z0-9.-]+)\/v3|crd\.([a-z0-9.-]+)\/v1)$/;

/** For the refusal of such a resource. */
export const OTHER_GROUP_HINT = `; a resource of another API group can be converted: ${identity.adminTool} convert -f FILE`;

/** `undefined` if the resource is not one of another group. */
export function otherGroupOf({ apiVersion, kind }: Fields): string | undefined {
  if (typeof apiVersion !== "string" || apiVersion === API_VERSION || typeof kind !== "string") return undefined;
  const [, current, former] = OTHER_GROUP.exec(apiVersion) ?? [];
  return kindIn(kind) === undefined ? undefined : (current ?? former);
}

/** As it can be created here: without what another datastore assigned. */
export function convertOtherGroup(value: Fields, group: string): Fields {
  const { apiVersion, kind: former, metadata: given, ...rest } = value;
  const kind = kindIn(String(former)) ?? "";
  const all = isObject(given) ? Object.entries(given).filter(([field]) => !ASSIGNED.has(field)) : [];
  const own = renameIn(Object.fromEntries(all), group);
  const metadata = apiVersion === `crd.${group}/v1` ? renameIn(storedMetadata(own, kind), group) : own;
  return { apiVersion: API_VERSION, kind, metadata, ...renameIn(rest, group) };
}

const ASSIGNED: ReadonlySet<string> = new Set([
  ...["resourceVersion", "uid", "creationTimestamp", "generation", "managedFields", "selfLink", "ownerReferences"],
]);

function kindIn(kind: string): string | undefined {
  return (findKind(ADMIN_KINDS, kind) ?? kindWithAlias(kind))?.kind;
}

/** Former releases hid the user's labels in an annotation, and stored policies under another name. */
function storedMetadata({ name = "", labels, annotations, ...others }: Fields, kind: string): Fields {
  const stored = {
    ...{ name: String(name), uid: "", resourceVersion: "" },
    ...(isObject(labels) ? { labels: textsOf(labels) } : {}),
    ...(isObject(annotations) ? { annotations: textsOf(annotations) } : {}),
  };
  const { annotations: copied, ...known } = copiedMetadata({ metadata: stored }, kind, []);
  const kept = isObject(copied) ? Object.entries(copied).filter(([key]) => key !== FORMER_UID) : [];
  return { ...others, ...known, ...(kept.length === 0 ? {} : { annotations: Object.fromEntries(kept) }) };
}

function textsOf(values: Fields): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, String(value)]));
}

function renameIn(fields: Fields, group: string): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, renamed(value, { name, group })]));
}

interface Field {
  readonly name: string;
  readonly group: string;
}

/** Only the keys of labels and annotations: any other text may contain the group by chance. */
function renamed(value: unknown, { name, group }: Field): unknown {
  if (typeof value === "string") return IS_SELECTOR.test(name) ? renameInSelector(value, group) : value;
  if (Array.isArray(value)) return value.map((each) => renamed(each, { name, group }));
  if (!isObject(value)) return value;
  if (!KEYED.has(name)) return renameIn(value, group);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [renamedKey(key, group), each]));
}

const IS_SELECTOR = /selector$/i;
const KEYED: ReadonlySet<string> = new Set(["labels", "annotations", "labelsToApply"]);

/** Quoted text is a value. */
function renameInSelector(selector: string, group: string): string {
  return selector.replace(/"[^"]*"|'[^']*'|[\w./-]+/g, (token) =>
    /^["']/.test(token) ? token : renamedKey(token, group),
  );
}

/** `example.org/role`, `cni.example.org/role`, and not `myexample.org/role`. */
function renamedKey(key: string, group: string): string {
  const [domain = ""] = key.split("/", 1);
  if (domain === key || (domain !== group && !domain.endsWith(`.${group}`))) return key;
  return `${domain.slice(0, -group.length)}${identity.labelPrefix}${key.slice(domain.length + 1)}`;
}
