/** Finds keys in the lines of a YAML document in block style, so that a text can be changed in one place and nowhere else. Pure. */

/** `first` is the line of the key, `end` the line after its value, without blank lines and comments that follow. */
export interface Span {
  readonly first: number;
  readonly end: number;
}

/** Of a key at the beginning of its line. */
export function spanOfKey(lines: readonly string[], key: string): Span | undefined {
  return spanAt(lines, { key, indentation: 0, within: { first: -1, end: lines.length } });
}

/** Of a key among the members of another. */
export function spanOfMember(lines: readonly string[], parent: Span, key: string): Span | undefined {
  const indentation = membersIndentation(lines, parent);
  return indentation === undefined ? undefined : spanAt(lines, { key, indentation, within: parent });
}

/** How far the lines below a key are indented; `undefined` if there are none. */
export function membersIndentation(lines: readonly string[], { first, end }: Span): number | undefined {
  const member = lines.slice(first + 1, end).find((line) => !isIgnored(line));
  return member === undefined ? undefined : indentationOf(member);
}

export function indentationOf(line: string): number {
  return line.length - line.trimStart().length;
}

/** Whether the value of the key is a literal block, whose lines are the text itself. */
export function isLiteral(line: string | undefined): boolean {
  return line !== undefined && /:[ ]+\|[-+]?[ ]*$/.test(line);
}

interface Wanted {
  readonly key: string;
  readonly indentation: number;
  readonly within: Span;
}

function spanAt(lines: readonly string[], { key, indentation, within }: Wanted): Span | undefined {
  const starts = [`${key}:`, `"${key}":`, `'${key}':`].map((start) => " ".repeat(indentation) + start);
  const isStart = (line: string) => starts.some((start) => line === start || line.startsWith(`${start} `));
  const first = lines.findIndex((line, index) => index > within.first && index < within.end && isStart(line));
  if (first === -1) return undefined;
  const isNext = (line: string, index: number) =>
    index > first && line.trim() !== "" && !isComment(line) && isOutside(line, indentation);
  const next = lines.findIndex((line, index) => index < within.end && isNext(line, index));
  let end = next === -1 ? within.end : next;
  while (end > first + 1 && isTrailing(lines[end - 1] ?? "", indentation)) end -= 1;
  return { first, end };
}

/** A list may be indented as far as the key that it is the value of. */
function isOutside(line: string, indentation: number): boolean {
  const own = indentationOf(line);
  return own < indentation || (own === indentation && !line.trimStart().startsWith("- "));
}

function isTrailing(line: string, indentation: number): boolean {
  return line.trim() === "" || (isComment(line) && indentationOf(line) <= indentation);
}

function isIgnored(line: string): boolean {
  return line.trim() === "" || isComment(line);
}

function isComment(line: string): boolean {
  return line.trimStart().startsWith("#");
}
