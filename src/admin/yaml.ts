/**
 * Values as YAML that every reader takes for the same values: of version 1.2,
 * and of 1.1 as kubectl, Go and PyYAML read it, to which `yes`, `12:30:45`,
 * `1_000` and `2001-12-14` are no texts.
 *
 * A text stands without quotes only where nothing could take it for anything else.
 */
export function formatYaml(value: unknown): string {
  return `${linesOf(value).join("\n")}\n`;
}

function linesOf(value: unknown): readonly string[] {
  if (Array.isArray(value) && value.length > 0) return value.flatMap((member) => indented("- ", linesOf(member)));
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [scalar(value)];
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return members.length === 0 ? ["{}"] : members.flatMap(([name, member]) => memberLines(textOf(name), member));
}

function memberLines(name: string, member: unknown): readonly string[] {
  const lines = linesOf(member);
  const isBlock = typeof member === "object" && member !== null && !/^[[{]/.test(lines[0] ?? "");
  return isBlock ? [`${name}:`, ...indented("  ", lines)] : [`${name}: ${lines[0]}`];
}

/** The first line behind the sign, the others below it. */
function indented(sign: string, [first = "", ...others]: readonly string[]): readonly string[] {
  return [`${sign}${first}`, ...others.map((line) => `  ${line}`)];
}

function scalar(value: unknown): string {
  if (typeof value === "string") return textOf(value);
  // Version 1.1 knows no exponent without a point.
  if (typeof value === "number") return JSON.stringify(value).replace(/^(-?\d+)e/, "$1.0e");
  return JSON.stringify(value) ?? "null";
}

/** One line of printable ASCII which begins as a word does; no `: ` and no ` #` within, no blank or colon at the end. */
const WORDS = /^(?!.*(?:: | #|[ :]$))[A-Za-z_/(][\x20-\x7e]*$/;
/** Numbers, times and signs begin with a digit, a sign or a point, and so do these, which nothing takes for one. */
const ADDRESS = /^\d{1,3}(?:\.\d{1,3}){3}(?:\/\d{1,2})?$/;
const TAKEN = /^(?:y|yes|n|no|on|off|true|false|null)$/i;

function textOf(text: string): string {
  return (WORDS.test(text) && !TAKEN.test(text)) || ADDRESS.test(text) ? text : quoted(text);
}

/** What JSON leaves as it is, and YAML does not allow or takes for the end of a line. */
const UNSEEN = /[\u007f-\u00a0\u2028\u2029\ufeff\ufffe\uffff]/g;

function quoted(text: string): string {
  return JSON.stringify(text).replace(
    UNSEEN,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
