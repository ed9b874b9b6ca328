import { PluginError } from "../../errors.ts";
import { isObject } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";
import { type Command, type Context, type Given, UsageError } from "../main/command.ts";
import { parseDocument } from "../manifest/parse-document.ts";
import { readText } from "../manifest/sources.ts";
import { DRY_RUN_OPTION } from "../resources/dry-run.ts";
import { KIND_WORDS, NAMESPACE_OPTION, parseReference } from "../resources/reference.ts";
import { changeNamed } from "./change-named.ts";
import { jsonPatch, PatchError } from "./json-patch.ts";
import { mergePatch } from "./merge-patch.ts";
import { strategicPatch } from "./strategic-patch.ts";

export const patchCommand: Command = {
  kind: "command",
  name: "patch",
  summary: "Update fields of a resource",
  description: [
    "A merge patch (--type merge, RFC 7386) is an object: objects are merged, null removes a field, lists are replaced.",
    "A strategic patch (--type strategic) is a merge patch with the directive $patch: replace or delete in an object. Lists of these kinds\nhave no merge keys, so that it replaces a list as a merge patch does, and directives for members of a list are refused.",
    "A JSON patch (--type json, RFC 6902) is a list of operations: add, remove, replace, move, copy and test.",
    "If the patched resource has another metadata.resourceVersion than the stored one, it is not written.",
    "Fields of the resource that have no effect in this version are reported on stderr.",
  ].join("\n"),
  operands: "KIND NAME",
  completes: KIND_WORDS,
  completesNames: "one",
  options: [
    { name: "patch", letter: "p", value: "PATCH", summary: "The patch, as JSON or YAML" },
    { name: "patch-file", value: "FILE", summary: "File with the patch, or - for standard input" },
    {
      name: "type",
      letter: "t",
      value: "TYPE",
      oneOf: ["merge", "json", "strategic"],
      summary: "Type of the patch: merge (default), json or strategic",
    },
    NAMESPACE_OPTION,
    DRY_RUN_OPTION,
  ],
  needsDatastore: true,
  examples: [
    {
      command: `patch ippool blue -p '{"spec":{"disabled":true}}'`,
      does: "Disable a pool: no new addresses are assigned from it",
    },
    {
      command: `patch node n1 --type json -p '[{"op":"remove","path":"/metadata/labels/rack"}]'`,
      does: "Apply a list of operations",
    },
    {
      command: `patch bgppeer tor -t strategic -p '{"spec":{"$patch":"replace","peerIP":"192.0.2.1","asNumber":64512}}'`,
      does: "Replace an object as a whole",
    },
    { command: "patch ippool blue -p 'spec: {nodeSelector: null}'", does: "Reset a field to its default" },
  ],
  async run(context, given) {
    const { kind, name, rest } = parseReference(given);
    if (rest.length > 0) throw new UsageError(`"patch" takes exactly one resource: got also ${quoted(rest[0])}`);
    const change = parsePatch(await patchText(context, given), given.values.get("type") ?? "merge");
    return changeNamed(context, given, {
      ...{ kind, name },
      change,
      action: "patched",
    });
  },
};

async function patchText(context: Context, given: Given): Promise<string> {
  const [text, file] = [given.values.get("patch"), given.values.get("patch-file")];
  if (text !== undefined && file !== undefined) throw new UsageError("Give either --patch or --patch-file, not both");
  if (text !== undefined) return text;
  if (file === undefined) throw new UsageError('"-p PATCH" or "--patch-file FILE" is required');
  return readText(context, file);
}

/** Returns what the patch does to a resource. */
function parsePatch(text: string, type: string): (resource: unknown) => unknown {
  const parsed = parseDocument({ text, line: 1 });
  if (!parsed.ok) throw new PluginError("decode-failure", `Cannot read the patch: ${parsed.problems.join("; ")}`);
  const { value } = parsed;
  if (type === "json") {
    if (!Array.isArray(value)) throw new UsageError("A JSON patch must be a list of operations; use --type merge");
    return orExplain((resource) => jsonPatch(resource, value));
  }
  if (!isObject(value)) {
    throw new UsageError(
      Array.isArray(value) ? `A ${type} patch must be an object; use --type json` : "The patch must be an object",
    );
  }
  const merge = type === "strategic" ? strategicPatch : mergePatch;
  return orExplain((resource) => merge(resource, value));
}

function orExplain(change: (resource: unknown) => unknown): (resource: unknown) => unknown {
  return (resource) => {
    try {
      return change(resource);
    } catch (failure) {
      if (!(failure instanceof PatchError)) throw failure;
      throw new PluginError("resource-invalid", `Cannot apply the patch: ${failure.message}`);
    }
  };
}
