/**
 * `-o custom-columns=NAME:.metadata.name,CIDR:.spec.cidr`, with the paths of
 * `-o jsonpath`. A word without a colon is a column of the kind's wide table:
 * `-o custom-columns=NAME,CIDR`.
 */
import { quoted } from "../../quote.ts";
import { valuesAt } from "./jsonpath/evaluate.ts";
import { parseLonePath } from "./jsonpath/parse.ts";
import { valueText } from "./jsonpath/print.ts";
import { type JsonPath, TemplateError } from "./jsonpath/template.ts";

export interface CustomColumn {
  readonly header: string;
  /** Absent: the column of the kind with this header. */
  readonly path?: JsonPath;
}

/** What a column shows if there is no value, as in kubectl. */
export const NO_VALUE = "<none>";

export function parseCustomColumns(text: string): readonly CustomColumn[] {
  return splitColumns(text).map((column) => {
    const colon = column.indexOf(":");
    if (colon < 0 && /^[A-Za-z][A-Za-z0-9 -]*$/.test(column)) return { header: column.toUpperCase() };
    if (colon <= 0 || colon === column.length - 1) {
      throw new TemplateError(`${quoted(column)} is not a column; write HEADER:PATH, for example NAME:.metadata.name`);
    }
    return { header: column.slice(0, colon), path: parseLonePath(column.slice(colon + 1)) };
  });
}

/** At commas that are not inside brackets or quotes. */
function splitColumns(text: string): readonly string[] {
  return text.match(/(?:\[(?:"[^"]*"|'[^']*'|[^\]"'])*\]|[^,])+|(?<=^|,)(?=,|$)/g) ?? [text];
}

export function customCell(path: JsonPath, resource: unknown): string {
  const values = valuesAt(path, { document: resource, current: resource });
  return values.length === 0 ? NO_VALUE : values.map(valueText).join(",");
}
