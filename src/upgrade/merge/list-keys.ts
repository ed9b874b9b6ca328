/** How the lists of objects are merged, by the name of the field. A list that is not in the table is taken as a whole. Pure. */
import { isObject } from "../../model/shape.ts";
import { canonicalJson } from "./canonical-json.ts";

export interface ListRule {
  /** What identifies an item; `undefined` if it does not have it. */
  readonly keyOf: (item: unknown) => string | undefined;
  /** Two different changes of one item are a conflict, although they concern different fields. */
  readonly isItemAtomic?: true;
  /** An item that the user has removed stays removed, although the release has changed it. */
  readonly doRemovalsStay?: true;
}

const byName: ListRule = { keyOf: field("name") };
/** `value` and `valueFrom`, `hostPath` and `configMap` exclude each other. */
const byNameAtomic: ListRule = { ...byName, isItemAtomic: true };
/** Each item is its own key: it is there, or not. */
const asSet: ListRule = { keyOf: canonicalJson };
const RULES: ReadonlyMap<string, ListRule> = new Map([
  ["containers", byName],
  ["initContainers", byName],
  ["volumes", byNameAtomic],
  ["env", byNameAtomic],
  ["imagePullSecrets", byName],
  ["secrets", byName],
  ["volumeMounts", { keyOf: field("mountPath") }],
  ["ports", { keyOf: portKey }],
  ["hostAliases", { keyOf: field("ip") }],
  ["envFrom", asSet],
  ["rules", asSet],
  ["subjects", asSet],
  ["plugins", { keyOf: field("type"), doRemovalsStay: true }],
  ["default_pools", { keyOf: field("cidr") }],
]);

/** `undefined` if the list is taken as a whole: also if an item of one of the lists has no key, or two have the same. */
export function listRule(name: string, lists: readonly (readonly unknown[])[]): ListRule | undefined {
  const rule = RULES.get(name);
  return rule !== undefined && lists.every((list) => hasKeys(list, rule)) ? rule : undefined;
}

export function byKey(list: readonly unknown[], { keyOf }: ListRule): ReadonlyMap<string, unknown> {
  return new Map(list.map((item) => [keyOf(item) ?? "", item]));
}

function hasKeys(list: readonly unknown[], { keyOf }: ListRule): boolean {
  const keys = list.map(keyOf);
  return !keys.includes(undefined) && new Set(keys).size === keys.length;
}

function field(name: string): ListRule["keyOf"] {
  return (item) => {
    const value = isObject(item) ? item[name] : undefined;
    return typeof value === "string" ? value : undefined;
  };
}

function portKey(item: unknown): string | undefined {
  if (!isObject(item)) return undefined;
  const port = item["containerPort"] ?? item["port"];
  return port === undefined ? undefined : `${port}/${item["protocol"] ?? "TCP"}`;
}
