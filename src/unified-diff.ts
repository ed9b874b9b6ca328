/** The difference between two texts as `diff -u` prints it; empty if they are the same. */
import { formatPatch, OMIT_HEADERS, type StructuredPatch, structuredPatch } from "diff";

const CONTEXT_LINES = 3;
/** Edits. To find more of them takes seconds: then everything between the equal beginning and the equal end counts as changed. */
const MOST_CHANGES = 2_000;

export function unifiedDiff(
  before: string,
  after: string,
  names: { readonly before: string; readonly after: string },
): string {
  const [old, wanted] = [withLineBreak(before), withLineBreak(after)];
  const options = { context: CONTEXT_LINES, maxEditLength: MOST_CHANGES };
  const patch = structuredPatch("", "", old, wanted, undefined, undefined, options) ?? replacement(old, wanted);
  if (patch.hunks.length === 0) return "";
  return `--- ${names.before}\n+++ ${names.after}\n${formatPatch(patch, OMIT_HEADERS).replace(/^@@ .*/gm, withoutOnes)}`;
}

function withLineBreak(text: string): string {
  return text === "" || text.endsWith("\n") ? text : `${text}\n`;
}

/** As `diff` does, which leaves out a count of one. */
function withoutOnes(range: string): string {
  return range.replace(/,1(?= )/g, "");
}

function replacement(before: string, after: string): StructuredPatch {
  const [old, wanted] = [before, after].map((text) => text.split("\n").slice(0, -1)) as [string[], string[]];
  const head = equalLines(old, wanted);
  const tail = equalLines(old.slice(head).reverse(), wanted.slice(head).reverse());
  const start = Math.max(0, head - CONTEXT_LINES);
  const [removed, added] = [old, wanted].map((lines) => lines.slice(head, lines.length - tail)) as [string[], string[]];
  const [leading, trailing] = [old.slice(start, head), old.slice(old.length - tail, old.length - tail + CONTEXT_LINES)];
  const context = leading.length + trailing.length;
  const lines = [
    ...leading.map((line) => ` ${line}`),
    ...removed.map((line) => `-${line}`),
    ...added.map((line) => `+${line}`),
    ...trailing.map((line) => ` ${line}`),
  ];
  const [oldLines, newLines] = [context + removed.length, context + added.length];
  const hunk = { oldStart: start + 1, oldLines, newStart: start + 1, newLines, lines };
  return { oldFileName: "", newFileName: "", oldHeader: undefined, newHeader: undefined, hunks: [hunk] };
}

/** How many lines are equal at the beginning. */
function equalLines(left: readonly string[], right: readonly string[]): number {
  const different = left.findIndex((line, index) => line !== right[index]);
  return different === -1 ? left.length : different;
}
