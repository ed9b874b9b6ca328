/** `-o` of commands that print resources. */
import { quoted } from "../../quote.ts";
import { type Given, UsageError } from "../command.ts";
import { parseTemplate } from "../jsonpath/parse.ts";
import { type Template, TemplateError } from "../jsonpath/template.ts";
import type { Option } from "../option.ts";
import { type CustomColumn, parseCustomColumns } from "./custom-columns.ts";

const SIMPLE_FORMATS = ["table", "wide", "yaml", "json", "name"] as const;
const TEMPLATE_FORMATS = ["jsonpath", "custom-columns"] as const;

export type OutputFormat =
  | { readonly kind: (typeof SIMPLE_FORMATS)[number] }
  | { readonly kind: "jsonpath"; readonly template: Template }
  | { readonly kind: "custom-columns"; readonly columns: readonly CustomColumn[] };

export const FORMAT_OPTION: Option = {
  name: "output",
  letter: "o",
  value: "FORMAT",
  oneOf: SIMPLE_FORMATS,
  withArgument: TEMPLATE_FORMATS,
  summary: "Output format: table (default), wide, yaml, json, name, jsonpath=TEMPLATE or custom-columns=HEADER:PATH,…",
};

export function formatOf(given: Given): OutputFormat {
  const asked = given.values.get(FORMAT_OPTION.name) ?? "table";
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
