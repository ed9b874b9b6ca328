/** The difference between two texts as `diff -u` prints it; empty if they are the same. */

const CONTEXT_LINES = 3;

interface Line {
  readonly sign: " " | "-" | "+";
  readonly text: string;
}

export function unifiedDiff(
  before: string,
  after: string,
  names: { readonly before: string; readonly after: string },
): string {
  const lines = diffLines(linesOf(before), linesOf(after));
  if (lines.every(({ sign }) => sign === " ")) return "";
  const hunks = hunksOf(lines).map((hunk) => formatHunk(lines, hunk));
  return `--- ${names.before}\n+++ ${names.after}\n${hunks.join("")}`;
}

function linesOf(text: string): readonly string[] {
  const lines = text.split("\n");
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

/** Without the lines that are the same at both ends, which are most, the rest is small. */
function diffLines(before: readonly string[], after: readonly string[]): readonly Line[] {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const same = (lines: readonly string[]) => lines.map((text): Line => ({ sign: " ", text }));
  return [
    ...same(before.slice(0, start)),
    ...diffMiddle(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...same(before.slice(before.length - end)),
  ];
}

/** More cells than this would take seconds: then everything counts as changed. */
const MOST_CELLS = 4_000_000;

/** By the longest common subsequence. */
function diffMiddle(before: readonly string[], after: readonly string[]): readonly Line[] {
  const removed = before.map((text): Line => ({ sign: "-", text }));
  const added = after.map((text): Line => ({ sign: "+", text }));
  if (before.length * after.length > MOST_CELLS) return [...removed, ...added];
  const width = after.length + 1;
  const common = new Uint32Array((before.length + 1) * width);
  const at = (row: number, column: number) => common[row * width + column] ?? 0;
  for (let row = before.length - 1; row >= 0; row -= 1) {
    for (let column = after.length - 1; column >= 0; column -= 1) {
      const isSame = before[row] === after[column];
      common[row * width + column] = isSame
        ? at(row + 1, column + 1) + 1
        : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const lines: Line[] = [];
  let [row, column] = [0, 0];
  while (row < before.length || column < after.length) {
    if (row < before.length && before[row] === after[column]) {
      lines.push({ sign: " ", text: before[row] ?? "" });
      row += 1;
      column += 1;
    } else if (column === after.length || (row < before.length && at(row + 1, column) >= at(row, column + 1))) {
      lines.push({ sign: "-", text: before[row] ?? "" });
      row += 1;
    } else {
      lines.push({ sign: "+", text: after[column] ?? "" });
      column += 1;
    }
  }
  return lines;
}

/** From the first line of a hunk up to the line after its last. */
type Hunk = readonly [start: number, end: number];

/** Changes with few lines between them are in one hunk. */
function hunksOf(lines: readonly Line[]): readonly Hunk[] {
  const hunks: [number, number][] = [];
  for (const [index, { sign }] of lines.entries()) {
    if (sign === " ") continue;
    const start = Math.max(0, index - CONTEXT_LINES);
    const end = Math.min(lines.length, index + CONTEXT_LINES + 1);
    const last = hunks.at(-1);
    if (last && start <= last[1]) last[1] = end;
    else hunks.push([start, end]);
  }
  return hunks;
}

function formatHunk(lines: readonly Line[], [start, end]: Hunk): string {
  const shown = lines.slice(start, end);
  const range = (other: Line["sign"]) => {
    const isOf = ({ sign }: Line) => sign !== other;
    const count = shown.filter(isOf).length;
    const first = lines.slice(0, start).filter(isOf).length + (count === 0 ? 0 : 1);
    return count === 1 ? `${first}` : `${first},${count}`;
  };
  const text = shown.map((line) => `${line.sign}${line.text}\n`).join("");
  return `@@ -${range("+")} +${range("-")} @@\n${text}`;
}
