/** Checks resources in files without a datastore: what `apply` checks before it opens one, and the given resources among each other. */

import { PluginError } from "../../errors.ts";
import { formatProblems } from "../../model/problem.ts";
import { withoutEffect } from "../../model/without-effect.ts";
import type { ExitCode, Given } from "../main/command.ts";
import type { DatastoreAccess } from "../main/context.ts";
import type { GivenResource } from "../manifest/manifest.ts";
import { readGivenResources } from "../manifest/sources.ts";
import type { ActionResult } from "../resources/action-result.ts";
import { forEachResource } from "../resources/for-each-resource.ts";
import { referenceText } from "../resources/reference.ts";

export async function run(context: DatastoreAccess, given: Given): Promise<ExitCode> {
  const all = await readGivenResources(context, given);
  const problems = problemsAmong(all);
  return forEachResource(context, given, { all, act: async (each) => judge(each, problems.get(each) ?? []) });
}

function judge({ kind, name, resource }: GivenResource, problems: readonly string[]): ActionResult {
  if (problems.length > 0) {
    throw new PluginError("resource-invalid", `${referenceText(kind, name)} is not valid: ${problems.join("; ")}`);
  }
  return { action: "valid", warnings: withoutEffect(kind.kind, resource.spec) };
}

/** What the resources make wrong together, by resource. A file may have tens of thousands: none is compared with all others. */
export function problemsAmong(all: readonly GivenResource[]): ReadonlyMap<GivenResource, readonly string[]> {
  const times = new Map<string, number>();
  for (const each of all) times.set(identityOf(each), (times.get(identityOf(each)) ?? 0) + 1);
  const ofKinds = Map.groupBy(all, ({ kind }) => kind);
  const conflicts = new Map(
    [...ofKinds].flatMap(([kind, given]) => [...(kind.among?.all(given.map(({ resource }) => resource)) ?? [])]),
  );
  return new Map(
    all.map((each) => {
      const conflict = conflicts.get(each.resource) ?? [];
      const isRepeated = (times.get(identityOf(each)) ?? 0) > 1;
      return [
        each,
        [
          ...(isRepeated ? ["the same resource is given more than once"] : []),
          ...(conflict.length === 0 ? [] : [formatProblems(conflict)]),
        ],
      ];
    }),
  );
}

/** No name contains a slash. */
function identityOf({ kind, name }: GivenResource): string {
  return `${kind.kind}/${name.namespace ?? ""}/${name.name}`;
}
