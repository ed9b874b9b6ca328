/**
 * Makes a manual page of the help that a program prints, so that both always say the same. The help consists of a line
 * "Usage: …", and of blocks with an empty line between them: paragraphs, rows of two columns, and rows below a heading.
 * Pure.
 */
import type { Block, ManualPage } from "./manual-page.ts";

export function usageParts(usage: string): ManualPage["parts"] {
  const [first = "", ...blocks] = usage.split("\n\n").map((block) => block.split("\n"));
  const parts = blocks.map(partOf);
  return [
    { heading: "Synopsis", blocks: [{ kind: "lines", lines: synopsis(first) }] },
    ...["Description", "Options", "Environment"].flatMap((heading) => {
      const found = parts.filter((part) => part.heading === heading).flatMap((part) => part.blocks);
      return found.length === 0 ? [] : [{ heading, blocks: found }];
    }),
  ];
}

function synopsis(lines: readonly string[] | string): readonly string[] {
  return [lines].flat().map((line) => line.replace(/^Usage: /, ""));
}

function partOf(lines: readonly string[]): { readonly heading: string; readonly blocks: readonly Block[] } {
  const [first = "", ...others] = lines;
  if (first.startsWith("  ")) return { heading: "Options", blocks: itemsOf(lines) };
  if (first === "Environment:") return { heading: "Environment", blocks: itemsOf(others) };
  return { heading: "Description", blocks: [{ kind: "paragraph", text: lines.join(" ") }] };
}

/** Rows with a term in the first column; others continue the row above. */
function itemsOf(lines: readonly string[]): readonly Block[] {
  const items: { kind: "item"; term: string; text: string }[] = [];
  for (const line of lines) {
    const [, term, text = ""] = /^ {2}(\S.*?) {2,}(\S.*)$/.exec(line) ?? [];
    const last = items.at(-1);
    if (term !== undefined) items.push({ kind: "item", term, text });
    else if (last !== undefined) last.text += ` ${line.trim()}`;
  }
  return items;
}
