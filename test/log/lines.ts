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

function parseLine(text: string): LogLine | undefined {
  const [, level, component, message, fields] = LINE.exec(text) ?? [];
  if (level === undefined || component === undefined || message === undefined) return undefined;
  const values = [...(fields ?? "").matchAll(FIELD)].map(([, name = "", value = ""]) => [
    name,
    value.replace(/\\(["\\])/g, "$1"),
  ]);
  return { level, component, message, fields: Object.fromEntries(values) };
}

export function linesOf(text: string): readonly LogLine[] {
  return text.split("\n").flatMap((line) => parseLine(line) ?? []);
}

/** What stays the same for other containers, addresses and times. */
function shapeOf({ level, component, message, fields }: LogLine): string {
  const text = message.replaceAll(/"[^"]*"|\/\S+|\d+/g, "…");
  return `[${level}] ${component}: ${text} ${Object.keys(fields).sort().join(" ")}`;
}

/** What only the documentation has of the lines of these components. */
export function unwrittenLines(isIncluded: (component: string) => boolean, written: readonly LogLine[]): string[] {
  const documented = documentedLines().filter(({ component }) => isIncluded(component));
  if (documented.length === 0) throw new Error("no line of these components is documented");
  const shapes = new Set(written.map(shapeOf));
  return documented.map(shapeOf).filter((shape) => !shapes.has(shape));
}

/** The log lines in all pages below docs/. */
function documentedLines(): readonly LogLine[] {
  const folder = join(import.meta.dir, "../../docs");
  const pages = readdirSync(folder).filter((name) => name.endsWith(".md"));
  const lines = pages.flatMap((page) => readFileSync(join(folder, page), "utf8").split("\n"));
  return lines.flatMap((line) => parseLine(line) ?? []);
}
