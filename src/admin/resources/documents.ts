/**
 * The documents of a text. A line that begins with `---` begins one, whatever
 * stands around it (YAML forbids such a line inside of any value), so that the
 * parts can be told without reading them, and numbered as a reader counts them.
 */
export interface Document {
  /** YAML of its own, its `---` included. */
  readonly text: string;
  /** Counts from 1; empty documents count. */
  readonly number: number;
  /** Of the text, where the document begins; counts from 1. */
  readonly line: number;
}

const BEGIN = /^\ufeff?---(\s|$)/;
const END = /^\.\.\.(\s|$)/;
/** Comments and directives before a `---` are no document. */
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
