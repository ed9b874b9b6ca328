/**
 * Formats values as YAML that every parser reads as the same values: parsers of
 * version 1.2, and of 1.1 (kubectl, Go, PyYAML), in which `yes`, `12:30:45`,
 * `1_000` and `2001-12-14` are not strings.
 *
 * A string is written without quotes only if no parser could read it as another type. Text of several lines, such as a
 * network config in a ConfigMap, is written as a literal block, so that it can be read and edited.
 */
export function formatYaml(value: unknown): string {
  return `${linesOf(value).join("\n")}\n`;
}

function linesOf(value: unknown): readonly string[] {
  if (Array.isArray(value) && value.length > 0) return value.flatMap((member) => indented("- ", linesOf(member)));
  if (typeof value === "string" && LINES.test(value)) return ["|", ...indented("  ", value.slice(0, -1).split("\n"))];
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [scalar(value)];
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return members.length === 0 ? ["{}"] : members.flatMap(([name, member]) => memberLines(textOf(name), member));
}

function memberLines(name: string, member: unknown): readonly string[] {
  const lines = linesOf(member);
  const isBlock = typeof member === "object" && member !== null && !/^[[{]/.test(lines[0] ?? "");
  return isBlock ? [`${name}:`, ...indented("  ", lines)] : [`${name}: ${lines[0]}`, ...lines.slice(1)];
}

/** The first line follows the sign, the others are indented below it. */
function indented(sign: string, [first = "", ...others]: readonly string[]): readonly string[] {
  return [`${sign}${first}`, ...others.map((line) => `  ${line}`)];
}

function scalar(value: unknown): string {
  if (typeof value === "string") return textOf(value);
  // Version 1.1 does not allow an exponent without a decimal point.
  if (typeof value === "number") return JSON.stringify(value).replace(/^(-?\d+)e/, "$1.0e");
  return JSON.stringify(value) ?? "null";
}

/** Several lines of printable ASCII, each with its line break; the first is not indented, the last is not blank: a literal block. */
const LINES = /^[\x21-\x7e][\x20-\x7e]*\n(?:[\x20-\x7e]*\n)* *[\x21-\x7e][\x20-\x7e]*\n$/;
/** One line of printable ASCII that begins like a word, without `: ` or ` #` inside and without a space or colon at the end. */
const WORDS = /^(?!.*(?:: | #|[ :]$))[A-Za-z_/(][\x20-\x7e]*$/;
/** Numbers and times begin with a digit, a sign or a point. Addresses do too, but no parser reads them as numbers. */
const ADDRESS = /^\d{1,3}(?:\.\d{1,3}){3}(?:\/\d{1,2})?$/;
const RESERVED_WORD = /^(?:y|yes|n|no|on|off|true|false|null)$/i;

function textOf(text: string): string {
  return (WORDS.test(text) && !RESERVED_WORD.test(text)) || ADDRESS.test(text) ? text : quoted(text);
}

/** Characters that JSON leaves unescaped, but YAML forbids or treats as a line break. */
const NEEDS_ESCAPE = /[\u007f-\u00a0\u2028\u2029\ufeff\ufffe\uffff]/g;

function quoted(text: string): string {
  return JSON.stringify(text).replace(
    NEEDS_ESCAPE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
