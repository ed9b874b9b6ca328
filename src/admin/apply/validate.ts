/** Checks resources in files without a datastore: what `apply` checks before it opens one, and the given resources among each other. */

import { PluginError } from "../../errors.ts";
import { formatProblems } from "../../model/problem.ts";
import { withoutEffect } from "../../model/without-effect.ts";
import type { Command } from "../main/command.ts";
import type { GivenResource } from "../manifest/manifest.ts";
import { FILE_OPTIONS, readGivenResources } from "../manifest/sources.ts";
import type { ActionResult } from "../resources/action-result.ts";
import { forEachResource } from "../resources/for-each-resource.ts";
import { NAMESPACE_OPTION, referenceText } from "../resources/reference.ts";

export const validateCommand: Command = {
  kind: "command",
  name: "validate",
  summary: "Check resources in files without a datastore",
  description: [
    "Checks the syntax, the fields and their values, and what two of the given resources make wrong together, such as overlapping",
    "pools or the same name twice. What only the datastore shows (resources that exist, tiers that policies name) is checked by",
    '"apply --dry-run". Fields that have no effect in this version are reported on stderr. The exit code is 1 if a resource is not valid.',
  ].join("\n"),
  options: [...FILE_OPTIONS, NAMESPACE_OPTION],
  examples: [
    { command: "validate -f policies/ -R", does: "Check all files below a directory" },
    { command: "validate -f - -o json < pool.yaml", does: "Check standard input, with JSON output for a script" },
  ],
  async run(context, given) {
    const all = await readGivenResources(context, given);
    const problems = problemsAmong(all);
    return forEachResource(context, given, { all, act: async (each) => judge(each, problems.get(each) ?? []) });
  },
};

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
