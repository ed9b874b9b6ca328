/** Rules that permit the same together, each resource once: resources of a group with the same verbs share a rule. Pure. */
import type { Rule } from "./rules.ts";

/** `rules` must not be limited to names of objects. */
export function combinedRules(rules: readonly Rule[]): readonly Rule[] {
  const verbs = new Map<string, Set<string>>();
  for (const { apiGroups, resources, verbs: allowed } of rules) {
    for (const place of apiGroups.flatMap((group) => resources.map((resource) => `${group} ${resource}`))) {
      verbs.set(place, new Set([...(verbs.get(place) ?? []), ...allowed]));
    }
  }
  const groups = Map.groupBy(verbs.keys(), (place) => `${place.split(" ")[0]} ${sorted(verbs.get(place)).join(",")}`);
  return [...groups].map(([key, places]) => {
    const [group = "", list = ""] = key.split(" ");
    return {
      apiGroups: [group],
      resources: places.map((place) => place.slice(group.length + 1)).toSorted(),
      verbs: list.split(","),
    };
  });
}

const ORDER = ["get", "list", "watch", "create", "update", "patch", "delete"];

function sorted(verbs: ReadonlySet<string> = new Set()): readonly string[] {
  return [...verbs].toSorted((one, other) => ORDER.indexOf(one) - ORDER.indexOf(other));
}
