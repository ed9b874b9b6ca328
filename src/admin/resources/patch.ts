import { PluginError } from "../../errors.ts";
import { isObject } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";
import { type Command, UsageError } from "../command.ts";
import { withDatastore } from "../datastore/open.ts";
import { forEachResource } from "./for-each-resource.ts";
import { mergePatch } from "./merge-patch.ts";
import { parseDocument } from "./parse-document.ts";
import { KIND_WORDS, NAMESPACE_OPTION, parseReference } from "./reference.ts";
import { updateResource } from "./update.ts";

export const patchCommand: Command = {
  kind: "command",
  name: "patch",
  summary: "Update fields of a resource",
  description: [
    "The patch is a JSON merge patch: objects are merged, null removes a field, lists are replaced as a whole.",
    "If the patch contains metadata.resourceVersion, it fails unless the resource still has that version.",
  ].join("\n"),
  operands: "KIND NAME",
  completes: KIND_WORDS,
  options: [
    { name: "patch", letter: "p", value: "PATCH", summary: "The merge patch, as JSON or YAML" },
    NAMESPACE_OPTION,
  ],
  needsDatastore: true,
  examples: [
    {
      command: `patch ippool blue -p '{"spec":{"disabled":true}}'`,
      does: "Disable a pool: no new addresses are assigned from it",
    },
    { command: "patch ippool blue -p 'spec: {nodeSelector: null}'", does: "Reset a field to its default" },
  ],
  async run(context, given) {
    const { kind, name, rest } = parseReference(given);
    if (rest.length > 0) throw new UsageError(`"patch" takes exactly one resource: got also ${quoted(rest[0])}`);
    const text = given.values.get("patch");
    if (text === undefined) throw new UsageError('"-p PATCH" is required');
    const patch = parsePatch(text);
    return withDatastore(context, given, (store) =>
      forEachResource(context, given, {
        all: [{ kind, name }],
        act: async (target) => {
          const change = (resource: unknown) => mergePatch(resource, patch);
          const { action, revision } = await updateResource(store, target, { change, context });
          return { action: action === "unchanged" ? action : "patched", revision };
        },
      }),
    );
  },
};

function parsePatch(text: string): Readonly<Record<string, unknown>> {
  const parsed = parseDocument({ text, line: 1 });
  if (!parsed.ok) throw new PluginError("decode-failure", `Cannot read the patch: ${parsed.problems.join("; ")}`);
  if (!isObject(parsed.value)) throw new UsageError("The patch must be an object");
  return parsed.value;
}
