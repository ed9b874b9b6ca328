/**
 * Environment variables that have a value, and get one from elsewhere in the new object, or the other way round: both together
 * are refused, and an apply does not remove what another manager has set. Pure.
 */
import type { Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import type { KubeObject } from "../../release/kube-object.ts";

const SOURCES = ["value", "valueFrom"] as const;

/** A JSON patch that fails if the object has changed since it was read; empty if nothing contradicts. */
export function contradictionPatch(live: Fields, wanted: KubeObject): readonly object[] {
  const removals = (["initContainers", "containers"] as const).flatMap((list) =>
    membersAt(live, ["spec", "template", "spec", list]).flatMap((container, index) => {
      const other = named(membersAt(wanted, ["spec", "template", "spec", list]), container["name"]);
      return removalsIn(container, other).map((name) => `/spec/template/spec/${list}/${index}/${name}`);
    }),
  );
  if (removals.length === 0) return [];
  const version = isObject(live["metadata"]) ? live["metadata"]["resourceVersion"] : undefined;
  return [
    { op: "test", path: "/metadata/resourceVersion", value: version },
    ...removals.map((path) => ({ op: "remove", path })),
  ];
}

function removalsIn(container: Fields, wanted: Fields | undefined): readonly string[] {
  const variables = membersAt(wanted ?? {}, ["env"]);
  return membersAt(container, ["env"]).flatMap((variable, index) => {
    const other = named(variables, variable["name"]);
    if (other === undefined) return [];
    const contradicting = SOURCES.filter((source) => source in variable && !(source in other));
    const hasOther = SOURCES.some((source) => source in other);
    return hasOther ? contradicting.map((source) => `env/${index}/${source}`) : [];
  });
}

function named(members: readonly Fields[], name: unknown): Fields | undefined {
  return members.find((member) => member["name"] === name);
}

function membersAt(object: Fields, path: readonly string[]): readonly Fields[] {
  const found = path.reduce<unknown>((inner, name) => (isObject(inner) ? inner[name] : undefined), object);
  return Array.isArray(found) ? found.filter(isObject) : [];
}
