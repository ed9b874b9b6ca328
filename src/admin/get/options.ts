import type { Option } from "../main/option.ts";

export const SIMPLE_FORMATS = ["table", "wide", "yaml", "json", "name"] as const;

/** Other names of a format: `ps` is what the peer's tool calls its table. */
export const FORMAT_ALIASES: ReadonlyMap<string, string> = new Map([["ps", "table"]]);

const TEMPLATE_FORMATS = ["jsonpath", "custom-columns"] as const;

const GO_TEMPLATES = ["go-template", "go-template-file"] as const;

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

/** Options of tables; as in kubectl, they have no effect on other formats. */
export const TABLE_OPTIONS: readonly Option[] = [
  { name: "no-headers", summary: "Print tables without their header" },
  { name: "show-labels", summary: "Also show the labels of each resource in tables, inherited ones too" },
];
