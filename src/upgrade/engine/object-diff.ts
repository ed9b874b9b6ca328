/** The difference between two objects of the API as a person reads it: YAML, without what the server sets. Pure. */
import type { Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import { unifiedDiff } from "../../unified-diff.ts";
import { formatYaml } from "../../yaml.ts";
import { contentOf, digestOf } from "./object-content.ts";

/** Empty if they have the same content. `undefined`: the object does not exist. */
export function objectDiff(before: Fields | undefined, after: Fields | undefined): string {
  return unifiedDiff(textOf(before), textOf(after), { before: "present", after: "planned" });
}

function textOf(object: Fields | undefined): string {
  return object === undefined ? "" : formatYaml(orderedFirst(masked(contentOf(object))));
}

/** The values of a Secret are replaced by digests: they show that a value changes, and nothing else. */
function masked(object: Fields): Fields {
  if (object["kind"] !== "Secret") return object;
  return { ...object, ...maskedMember(object, "data"), ...maskedMember(object, "stringData") };
}

function maskedMember(object: Fields, name: string): Fields {
  const values = object[name];
  if (!isObject(values)) return {};
  const masks = Object.entries(values).map(([key, value]) => [key, `(${digestOf(String(value)).slice(0, 8)})`]);
  return { [name]: Object.fromEntries(masks) };
}

/** Servers and manifests write members in different orders. */
function orderedFirst(object: Fields): Fields {
  const { apiVersion, kind, metadata, ...rest } = object;
  return { apiVersion, kind, metadata, ...rest };
}
