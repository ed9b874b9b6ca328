/** `-o` of commands that print resources. */
import { quoted } from "../../quote.ts";
import { type Given, UsageError } from "../main/command.ts";
import type { Option } from "../main/option.ts";
import { type CustomColumn, parseCustomColumns } from "./custom-columns.ts";
import { parseTemplate } from "./jsonpath/parse.ts";
import { type Template, TemplateError } from "./jsonpath/template.ts";

const SIMPLE_FORMATS = ["table", "wide", "yaml", "json", "name"] as const;
const TEMPLATE_FORMATS = ["jsonpath", "custom-columns"] as const;
/** Other names of a format: `ps` is what the peer's tool calls its table. */
const FORMAT_ALIASES: ReadonlyMap<string, string> = new Map([["ps", "table"]]);
const GO_TEMPLATES = ["go-template", "go-template-file"] as const;

export type OutputFormat =
  | { readonly kind: (typeof SIMPLE_FORMATS)[number] }
  | { readonly kind: "jsonpath"; readonly template: Template }
  | { readonly kind: "custom-columns"; readonly columns: readonly CustomColumn[] };

export const FORMAT_OPTION: Option = {
  name: "output",
  letter: "o",
  value: "FORMAT",
  oneOf: [...SIMPLE_FORMATS, ...FORMAT_ALIASES.keys()],
  withArgument: TEMPLATE_FORMATS,
  refusedValues: new Map(
    GO_TEMPLATES.map((name) => [
      name,
      "Go templates are not supported; use jsonpath=TEMPLATE or custom-columns=HEADER:PATH,…",
    ]),
  ),
  summary:
    "Output format: table (default, also ps), wide, yaml, json, name, jsonpath=TEMPLATE or custom-columns=HEADER:PATH,…",
};

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
