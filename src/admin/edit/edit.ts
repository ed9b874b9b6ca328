/**
 * Changes a resource in the user's editor.
 *
 * Only what the user changed is written, on top of the resource as it is then:
 * a change by someone else in the meantime is kept, and one to the same field
 * is an error. What the user wrote is never lost: after an error the editor
 * opens again, or the file is kept.
 */

import type { Datastore } from "../../datastore/datastore.ts";
import { describeFailure, PluginError } from "../../errors.ts";
import type { Resource } from "../../model/resource.ts";
import { isObject } from "../../model/shape.ts";
import { formatYaml } from "../../yaml.ts";
import { withDatastore } from "../datastore/open.ts";
import { type ExitCode, type Given, UsageError } from "../main/command.ts";
import type { Call, Clock, DatastoreAccess, Host, Terminal } from "../main/context.ts";
import { parseDocument } from "../manifest/parse-document.ts";
import type { ActionResult } from "../resources/action-result.ts";
import { notFound } from "../resources/find.ts";
import { forEachResource } from "../resources/for-each-resource.ts";
import { withPolicyNotes } from "../resources/policy-notes.ts";
import { parseReference, referenceText } from "../resources/reference.ts";
import { resolveName } from "../resources/resolve-name.ts";
import { readOne } from "../resources/stored.ts";
import { withWrittenNote } from "../resources/written-note.ts";
import { conflictsOf, patchBetween } from "./merge-difference.ts";
import { mergePatch } from "./merge-patch.ts";
import { type Target, updateResource } from "./update.ts";

export async function run(context: DatastoreAccess & Host & Clock, given: Given): Promise<ExitCode> {
  const { kind, name, rest } = parseReference(given);
  if (rest.length > 0) throw new UsageError(`"edit" takes exactly one resource: got also "${rest[0]}"`);
  return withDatastore(context, given, (store) =>
    withPolicyNotes(store, { context, given, kinds: [kind] }, async (noted) =>
      forEachResource(context, given, {
        all: [{ kind, name: await resolveName(store, kind, name) }],
        act: async (target) => withWrittenNote(await editResource(noted, target, context), noted, target),
      }),
    ),
  );
}

async function editResource(store: Datastore, target: Target, context: Call & Terminal & Clock): Promise<ActionResult> {
  const original = (await readOne(store, target.kind, target.name))?.resource;
  if (!original) throw await notFound(store, target);
  const editor = context.env["EDITOR"] || context.env["VISUAL"] || "vi";
  const place = referenceText(target.kind, target.name);
  let body = formatYaml(original);
  let problem: PluginError | undefined;
  for (;;) {
    const edited = await context.editText(`${commentOf(place, problem)}${body}`, editor);
    const text = withoutComment(edited.text);
    if (text === body || text.trim() === "") {
      if (problem) throw withPlace(problem, edited.path);
      await edited.remove();
      return { action: "unchanged", note: "nothing was changed in the editor" };
    }
    try {
      const done = await writeEdited(store, target, { original, text, context });
      await edited.remove();
      return done;
    } catch (failure) {
      if (!(failure instanceof PluginError)) throw failure;
      if (!CORRECTABLE.has(failure.kind)) throw withPlace(failure, edited.path);
      await edited.remove();
      [problem, body] = [failure, text];
    }
  }
}

/** Errors that the user can correct in the text. */
const CORRECTABLE: ReadonlySet<string> = new Set<PluginError["kind"]>(["resource-invalid", "decode-failure"]);

async function writeEdited(
  store: Datastore,
  target: Target,
  { original, text, context }: { readonly original: Resource; readonly text: string; readonly context: Clock },
): Promise<ActionResult> {
  const place = referenceText(target.kind, target.name);
  const parsed = parseDocument({ text, line: 1 });
  if (!parsed.ok) throw new PluginError("decode-failure", `Cannot read the text: ${parsed.problems.join("; ")}`);
  if (!isObject(parsed.value)) throw new PluginError("resource-invalid", `Cannot change ${place}: it is not an object`);
  const patch = patchBetween(original, parsed.value);
  const done = await updateResource(store, target, {
    change(current) {
      const [conflict] = conflictsOf(original, current, patch);
      if (conflict === undefined) return mergePatch(current, patch);
      throw new PluginError("resource-changed", `Cannot change ${place}: someone else has changed ${conflict} too`);
    },
    context,
  });
  return { ...done, action: done.action === "unchanged" ? done.action : "edited" };
}

function withPlace(failure: PluginError, path: string): PluginError {
  const details = [failure.details, `the edited text is in ${path}`].filter((part) => part !== "").join("; ");
  return new PluginError(failure.kind, failure.message, { details, cause: failure });
}

const COMMENT = "# ";

function commentOf(place: string, problem: PluginError | undefined): string {
  const lines = [
    `Edit ${place}, then save and quit. Lines at the top that begin with "#" are ignored;`,
    "an empty file, or one without changes, changes nothing.",
    ...(problem ? ["", ...`error: ${describeFailure(problem)}`.split("\n")] : []),
  ];
  return lines
    .map((line) => `${COMMENT}${line}`.trimEnd())
    .join("\n")
    .concat("\n");
}

function withoutComment(text: string): string {
  return text.replace(/^(?:#.*\n)+/, "");
}
