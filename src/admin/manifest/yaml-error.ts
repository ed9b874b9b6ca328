/**
 * Where a YAML document is broken, and why: the parser reports neither line nor column.
 *
 * A document of whole lines is valid up to the line with the error (block style has no closing marks), so the parser is
 * asked for ever shorter beginnings. What is wrong with the next line is then looked for in its text.
 */
export interface YamlError {
  /** Both start at 1. */
  readonly line: number;
  readonly column: number;
  readonly reason: string;
}

/** Each attempt parses only up to the error. */
const MAXIMUM_LINES = 5_000;

/** `parserReason`: what the parser said about the whole text. */
export function locateYamlError(text: string, parserReason: string): YamlError {
  const lines = text.split("\n");
  const index = lines.length > MAXIMUM_LINES ? 0 : firstBrokenLine(lines);
  const found = unclosedFrom(lines, index) ?? problemIn(lines, index);
  if (found !== undefined) return found;
  return { line: index + 1, column: indentOf(lines[index] ?? "") + 1, reason: lowerFirst(parserReason) };
}

function firstBrokenLine(lines: readonly string[]): number {
  for (let count = lines.length - 1; count > 0; count -= 1) {
    if (isYaml(lines.slice(0, count).join("\n"))) return count;
  }
  return 0;
}

function isYaml(text: string): boolean {
  try {
    Bun.YAML.parse(text);
    return true;
  } catch {
    return false;
  }
}

interface Opening {
  readonly mark: string;
  readonly line: number;
  readonly column: number;
}

const CLOSING: Readonly<Record<string, string>> = { "}": "{", "]": "[" };

/** The last bracket or quote that is opened at or after the line and never closed, or one that is closed by another. */
function unclosedFrom(lines: readonly string[], start: number): YamlError | undefined {
  const open: Opening[] = [];
  for (let index = start; index < lines.length; index += 1) {
    const text = lines[index] ?? "";
    for (let at = 0; at < text.length; at += 1) {
      const here = { mark: text[at] ?? "", line: index + 1, column: at + 1 };
      const last = open.at(-1);
      if (last?.mark === '"' || last?.mark === "'") {
        if (here.mark === "\\" && last.mark === '"') at += 1;
        else if (here.mark === last.mark && text[at + 1] === last.mark && last.mark === "'") at += 1;
        else if (here.mark === last.mark) open.pop();
      } else if (here.mark === "#" && (at === 0 || /\s/.test(text[at - 1] ?? ""))) {
        break;
      } else if (`"'{[`.includes(here.mark) && startsValue(text, at, last !== undefined)) {
        open.push(here);
      } else if (here.mark in CLOSING && last === undefined && startsValue(text, at, false)) {
        return { ...here, reason: `"${here.mark}" closes no bracket; write a value that begins with it in quotes` };
      } else if (here.mark in CLOSING && last !== undefined) {
        if (CLOSING[here.mark] !== last.mark) return { ...here, reason: `"${here.mark}" closes ${placeOf(last)}` };
        open.pop();
      }
    }
    // What was opened on the broken line and closed there is not the problem, and later lines are not broken.
    if (open.length === 0) return undefined;
  }
  const first = open.at(-1);
  return first && { ...first, reason: `the ${nameOf(first.mark)} that opens here is not closed` };
}

/** Inside brackets every bracket counts; elsewhere only at the beginning of a value: `a[0]` is plain text. */
function startsValue(text: string, at: number, isInBrackets: boolean): boolean {
  const before = text.slice(0, at);
  if (isInBrackets && "{[".includes(text[at] ?? "")) return true;
  return isInBrackets ? /(?:^|[\s{[,:])$/.test(before) : /(?:^|:\s|-\s)\s*$/.test(before);
}

/** Mistakes that can be seen in the line itself. */
function problemIn(lines: readonly string[], index: number): YamlError | undefined {
  const text = lines[index] ?? "";
  const at = (column: number, reason: string): YamlError => ({ line: index + 1, column: column + 1, reason });
  const indent = /^\s*/.exec(text)?.[0] ?? "";
  if (indent.includes("\t")) return at(indent.indexOf("\t"), "a tab in the indentation; use spaces");

  const reserved = /^(\s*(?:- +)*(?:[^\s:#]+:\s+)?)([@`%])/.exec(text);
  if (reserved) return at(reserved[1]?.length ?? 0, `a value must not begin with "${reserved[2]}"; write it in quotes`);
  const alias = /^(\s*(?:- +)*(?:[^\s:#]+:\s+)?)\*(\S+)/.exec(text);
  if (alias && !lines.slice(0, index + 1).some((line) => line.includes(`&${alias[2]}`))) {
    return at(alias[1]?.length ?? 0, `alias "*${alias[2]}" has no anchor "&${alias[2]}" before it; write it in quotes`);
  }
  const second = /^\s*(?:- +)*[^\s"'#[{][^"'#]*?:\s+[^"'[{#\s][^#]*?:(?=\s|$)/.exec(text);
  if (second) return at(second[0].length - 1, 'a second ":" in one line; write the value in quotes');
  if (indent.length > 0 && text.trim() !== "" && !matchesIndentation(lines, index)) {
    return at(indent.length, "its indentation matches no line above it");
  }
  return undefined;
}

function matchesIndentation(lines: readonly string[], index: number): boolean {
  const indent = indentOf(lines[index] ?? "");
  return lines.slice(0, index).some((line) => {
    const dashes = /^\s*(?:- +)*/.exec(line)?.[0].length ?? 0;
    return line.trim() !== "" && (indentOf(line) === indent || dashes === indent);
  });
}

function placeOf({ mark, line, column }: Opening): string {
  return `the ${nameOf(mark)} of line ${line}, column ${column}`;
}

function nameOf(mark: string): string {
  return mark === '"' || mark === "'" ? `quotation mark ${mark}` : `bracket "${mark}"`;
}

function indentOf(line: string): number {
  return /^\s*/.exec(line)?.[0].length ?? 0;
}

function lowerFirst(text: string): string {
  return text.slice(0, 1).toLowerCase() + text.slice(1);
}
