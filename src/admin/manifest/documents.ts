/**
 * Splits a text into its documents. A line that begins with `---` starts a
 * document in any context (YAML forbids such a line inside a value), so the text
 * can be split without parsing it, and documents are numbered as a reader counts
 * them.
 */
export interface Document {
  /** A complete YAML document, including its `---`. */
  readonly text: string;
  /** Starts at 1; empty documents count. */
  readonly number: number;
  /** The line of the text where the document begins; starts at 1. */
  readonly line: number;
}

const BEGIN = /^\ufeff?---(\s|$)/;
const END = /^\.\.\.(\s|$)/;
/** Comments and directives before a `---` are not a document. */
const BEFORE = /^\s*(#|$)|^%/;

export function splitDocuments(text: string): readonly Document[] {
  const lines = text.split("\n");
  const documents: Document[] = [];
  let start = 0;
  let isBegun = false;
  const finish = (end: number) => {
    const part = lines.slice(start, end).join("\n");
    if (isBegun) documents.push({ text: part, number: documents.length + 1, line: start + 1 });
  };
  for (const [index, line] of lines.entries()) {
    const begins = BEGIN.test(line);
    const ends = END.test(line);
    if (ends || (begins && isBegun)) {
      finish(index);
      start = ends ? index + 1 : index;
      isBegun = begins;
    } else if (begins || !BEFORE.test(line)) {
      isBegun = true;
    }
  }
  finish(lines.length);
  return documents;
}
