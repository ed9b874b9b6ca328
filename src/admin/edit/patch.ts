import { PluginError } from "../../errors.ts";
import { isObject } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";
import { type ExitCode, type Given, UsageError } from "../main/command.ts";
import type { Clock, DatastoreAccess, Files, Host, Terminal } from "../main/context.ts";
import { parseDocument } from "../manifest/parse-document.ts";
import { readText } from "../manifest/sources.ts";
import { parseReference } from "../resources/reference.ts";
import { changeNamed } from "./change-named.ts";
import { mergePatch } from "./merge-patch.ts";
import { PatchError } from "./patch-error.ts";
import { strategicPatch } from "./strategic-patch.ts";

export async function run(context: DatastoreAccess & Host & Clock, given: Given): Promise<ExitCode> {
  const { kind, name, rest } = parseReference(given);
  if (rest.length > 0) throw new UsageError(`"patch" takes exactly one resource: got also ${quoted(rest[0])}`);
  const change = await parsePatch(await patchText(context, given), given.values.get("type") ?? "merge");
  return changeNamed(context, given, {
    ...{ kind, name },
    change,
    action: "patched",
  });
}

async function patchText(context: Terminal & Files, given: Given): Promise<string> {
  const [text, file] = [given.values.get("patch"), given.values.get("patch-file")];
  if (text !== undefined && file !== undefined) throw new UsageError("Give either --patch or --patch-file, not both");
  if (text !== undefined) return text;
  if (file === undefined) throw new UsageError('"-p PATCH" or "--patch-file FILE" is required');
  return readText(context, file);
}

/** Returns what the patch does to a resource. */
async function parsePatch(text: string, type: string): Promise<(resource: unknown) => unknown> {
  const parsed = parseDocument({ text, line: 1 });
  if (!parsed.ok) throw new PluginError("decode-failure", `Cannot read the patch: ${parsed.problems.join("; ")}`);
  const { value } = parsed;
  if (type === "json") {
    if (!Array.isArray(value)) throw new UsageError("A JSON patch must be a list of operations; use --type merge");
    const { jsonPatch } = await import("./json-patch.ts");
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
