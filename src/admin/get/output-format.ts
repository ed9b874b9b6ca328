/** `-o` of commands that print resources. */

import { quoted } from "../../quote.ts";
import { type Given, UsageError } from "../main/command.ts";
import { type CustomColumn, parseCustomColumns } from "./custom-columns.ts";
import { parseTemplate } from "./jsonpath/parse.ts";
import { type Template, TemplateError } from "./jsonpath/template.ts";
import { FORMAT_ALIASES, FORMAT_OPTION, SIMPLE_FORMATS } from "./options.ts";

export type OutputFormat =
  | { readonly kind: (typeof SIMPLE_FORMATS)[number] }
  | { readonly kind: "jsonpath"; readonly template: Template }
  | { readonly kind: "custom-columns"; readonly columns: readonly CustomColumn[] };

export function formatOf(given: Given): OutputFormat {
  const named = given.values.get(FORMAT_OPTION.name) ?? "table";
  const asked = FORMAT_ALIASES.get(named) ?? named;
  const simple = SIMPLE_FORMATS.find((format) => format === asked);
  if (simple !== undefined) return { kind: simple };
  const equals = asked.indexOf("=");
  const [name, argument] = [asked.slice(0, equals), asked.slice(equals + 1)];
  try {
    if (name === "jsonpath") return { kind: name, template: parseTemplate(argument) };
    return { kind: "custom-columns", columns: parseCustomColumns(argument) };
  } catch (failure) {
    if (!(failure instanceof TemplateError)) throw failure;
    throw new UsageError(`${quoted(argument)} is not a valid ${name} template: ${failure.message}`);
  }
}
