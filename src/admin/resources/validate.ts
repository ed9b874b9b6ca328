/** Checks resources in files without a datastore: what `apply` checks before it opens one, and the given resources among each other. */

import { PluginError } from "../../errors.ts";
import { formatProblems } from "../../model/problem.ts";
import { withoutEffect } from "../../model/without-effect.ts";
import type { Command } from "../command.ts";
import type { ActionResult } from "./action-result.ts";
import { forEachResource } from "./for-each-resource.ts";
import type { GivenResource } from "./manifest.ts";
import { NAMESPACE_OPTION, referenceText } from "./reference.ts";
import { FILE_OPTIONS, readGivenResources } from "./sources.ts";

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
    return forEachResource(context, given, { all, act: async (each) => validate(each, all) });
  },
};

function validate(given: GivenResource, all: readonly GivenResource[]): ActionResult {
  const { kind, resource } = given;
  const others = all.filter((other) => other.kind.kind === kind.kind);
  const isRepeated = others.some((other) => other !== given && sameName(other, given));
  const problems = [
    ...(isRepeated ? ["the same resource is given more than once"] : []),
    ...[
      kind.checkAmong?.(
        resource,
        others.map((other) => other.resource),
      ) ?? [],
    ]
      .filter((found) => found.length > 0)
      .map(formatProblems),
  ];
  if (problems.length > 0) {
    throw new PluginError(
      "resource-invalid",
      `${referenceText(kind, given.name)} is not valid: ${problems.join("; ")}`,
    );
  }
  return { action: "valid", warnings: withoutEffect(kind.kind, resource.spec) };
}

function sameName({ name: left }: GivenResource, { name: right }: GivenResource): boolean {
  return left.name === right.name && left.namespace === right.namespace;
}
