/** Log lines as values, from a log or from a page of the documentation. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface LogLine {
  readonly level: string;
  readonly component: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, string>>;
}

const LINE = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \[(\w+)\]\[\d+\] (\S+): (.*?)((?: \w+="(?:[^"\\]|\\.)*")*)$/;
const FIELD = / (\w+)="((?:[^"\\]|\\.)*)"/g;

export function parseLine(text: string): LogLine | undefined {
  const [, level, component, message, fields] = LINE.exec(text) ?? [];
  if (level === undefined || component === undefined || message === undefined) return undefined;
  const values = [...(fields ?? "").matchAll(FIELD)].map(([, name = "", value = ""]) => [
    name,
    value.replace(/\\(["\\])/g, "$1"),
  ]);
  return { level, component, message, fields: Object.fromEntries(values) };
}

/** What stays the same for other containers, addresses and times. */
export function shapeOf({ level, component, message, fields }: LogLine): string {
  const text = message.replaceAll(/"[^"]*"|\/\S+|\d+/g, "…");
  return `[${level}] ${component}: ${text} ${Object.keys(fields).sort().join(" ")}`;
}

/** The log lines in all pages below docs/. */
export function documentedLines(): readonly LogLine[] {
  const folder = join(import.meta.dir, "../../docs");
  const pages = readdirSync(folder).filter((name) => name.endsWith(".md"));
  const lines = pages.flatMap((page) => readFileSync(join(folder, page), "utf8").split("\n"));
  return lines.flatMap((line) => parseLine(line) ?? []);
}
