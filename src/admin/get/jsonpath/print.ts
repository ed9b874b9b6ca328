import { type Scope, valuesAt } from "./evaluate.ts";
import type { Template, TemplatePart } from "./template.ts";

/** The text of a template for a document; without a final line break, as in kubectl. */
export function printTemplate(template: Template, document: unknown): string {
  return printParts(template, { document, current: document });
}

function printParts(template: Template, scope: Scope): string {
  return template.map((part) => printPart(part, scope)).join("");
}

function printPart(part: TemplatePart, scope: Scope): string {
  switch (part.kind) {
    case "text":
      return part.text;
    case "path":
      return valuesAt(part.path, scope).map(valueText).join(" ");
    case "range":
      return valuesAt(part.path, scope)
        .map((current) => printParts(part.body, { ...scope, current }))
        .join("");
  }
}

/** Texts as they are, everything else as JSON. */
export function valueText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
