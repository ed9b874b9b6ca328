/** What of a value a definition's schema knows, and the paths of what it does not. Pure. */
import { isObject } from "../../../model/shape.ts";

export interface Pruned {
  readonly value: unknown;
  /** `vendorNetwork.ipPools[0].assignmentMode` */
  readonly dropped: readonly string[];
}

export function pruneBySchema(value: unknown, schema: unknown, path = ""): Pruned {
  if (!isObject(schema) || schema["x-kubernetes-preserve-unknown-fields"] === true) return { value, dropped: [] };
  if (Array.isArray(value)) {
    const members = value.map((member, index) => pruneBySchema(member, schema["items"], `${path}[${index}]`));
    return { value: members.map((member) => member.value), dropped: members.flatMap(({ dropped }) => dropped) };
  }
  const { properties, additionalProperties } = schema;
  if (!isObject(value) || (!isObject(properties) && additionalProperties === undefined)) return { value, dropped: [] };
  const members = Object.entries(value).map(([name, member]) => {
    const place = path === "" ? name : `${path}.${name}`;
    const inner = isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : additionalProperties;
    return { name, pruned: inner === undefined ? undefined : pruneBySchema(member, inner, place), place };
  });
  return {
    value: Object.fromEntries(
      members.flatMap(({ name, pruned }) => (pruned === undefined ? [] : [[name, pruned.value]])),
    ),
    dropped: members.flatMap(({ pruned, place }) => pruned?.dropped ?? [place]),
  };
}
