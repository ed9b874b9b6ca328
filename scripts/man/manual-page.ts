/** Writes a manual page in the language of man(7), from plain text. Pure. */

export type Block =
  | { readonly kind: "paragraph"; readonly text: string }
  /** A term and what it means. */
  | { readonly kind: "item"; readonly term: string; readonly text: string }
  | { readonly kind: "subheading"; readonly text: string }
  /** Printed as it is. */
  | { readonly kind: "lines"; readonly lines: readonly string[] };

export interface ManualPage {
  readonly name: string;
  /** 1: commands of users, 8: of administrators. */
  readonly section: 1 | 8;
  /** Of the product, with its release. */
  readonly source: string;
  /** In one line, after the names. */
  readonly summary: string;
  /** Further names that the page is about. */
  readonly otherNames?: readonly string[];
  readonly parts: readonly { readonly heading: string; readonly blocks: readonly Block[] }[];
}

/** Without a date: the same release always gives the same page. */
export function manualPage({ name, section, source, summary, otherNames = [], parts }: ManualPage): string {
  const names = [name, ...otherNames].map(escaped).join(", ");
  return [
    `.TH ${quoted(name.toUpperCase())} ${section} "" ${quoted(source)}`,
    // Names and paths are not broken, and the space between words is even.
    ".nh",
    ".ad l",
    ".SH NAME",
    `${names} \\- ${escaped(summary)}`,
    ...parts.flatMap(({ heading, blocks }) => [`.SH ${quoted(heading.toUpperCase())}`, ...blocks.flatMap(linesOf)]),
    "",
  ].join("\n");
}

function linesOf(block: Block): readonly string[] {
  switch (block.kind) {
    case "paragraph":
      return [".PP", textLine(block.text)];
    case "item":
      return [".TP", `\\fB${escaped(block.term)}\\fR`, textLine(block.text)];
    case "subheading":
      return [`.SS ${quoted(block.text)}`];
    case "lines":
      return [".PP", ".nf", ...block.lines.map(textLine), ".fi"];
  }
}

/** A line that begins with a dot or a quote would be a request; an empty one ends a paragraph. */
function textLine(text: string): string {
  return /^[.']/.test(text) || text === "" ? `\\&${escaped(text)}` : escaped(text);
}

/** A plain "-" would be printed as a hyphen, which shells do not accept. */
function escaped(text: string): string {
  return text.replaceAll("\\", "\\e").replaceAll("-", "\\-");
}

function quoted(text: string): string {
  return `"${escaped(text).replaceAll('"', "\\(dq")}"`;
}
