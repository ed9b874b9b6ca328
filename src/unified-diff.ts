/** The difference between two texts as `diff -u` prints it; empty if they are the same. */
import { formatPatch, OMIT_HEADERS, type StructuredPatch, structuredPatch } from "diff";

const CONTEXT_LINES = 3;
/** Edits. To find more of them takes seconds: then everything counts as changed. */
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
  const [removed, added] = [before, after].map((text) => text.split("\n").slice(0, -1)) as [string[], string[]];
  const lines = [...removed.map((line) => `-${line}`), ...added.map((line) => `+${line}`)];
  const hunk = { oldStart: 1, oldLines: removed.length, newStart: 1, newLines: added.length, lines };
  return { oldFileName: "", newFileName: "", oldHeader: undefined, newHeader: undefined, hunks: [hunk] };
}
