/** Where a YAML document is broken, and why: the parser of the runtime, which reads the values, reports neither line nor column. */
import {
  type Document,
  isAlias,
  isCollection,
  isNode,
  isScalar,
  LineCounter,
  parseDocument,
  visit,
  type YAMLParseError,
} from "yaml";

export interface YamlError {
  /** Both start at 1. */
  readonly line: number;
  readonly column: number;
  readonly reason: string;
}

interface Problem {
  readonly offset: number;
  readonly reason: string;
}

/** `parserReason`: what the parser of the runtime said about the whole text. */
export function locateYamlError(text: string, parserReason: string): YamlError {
  const deep = tooManyBrackets(text);
  if (deep !== undefined) return deep;
  const lines = new LineCounter();
  // Not strict, as the parser of the runtime is not.
  const options = { strict: false, uniqueKeys: false, prettyErrors: false, logLevel: "silent" } as const;
  const document = parseDocument(text, { ...options, lineCounter: lines });
  const place = (offset: number) => {
    const { line, col } = lines.linePos(Math.min(offset, text.trimEnd().length));
    return { line, column: col };
  };
  const other = { offset: document.contents?.range?.[0] ?? 0, reason: lowerFirst(parserReason) };
  const { offset, reason } =
    explain(document.errors, { text, document, place }) ?? aliasWithoutAnchor(document) ?? other;
  return { ...place(offset), reason };
}

/** The package takes seconds for thousands of brackets inside each other. */
const MOST_BRACKETS = 200;

function tooManyBrackets(text: string): YamlError | undefined {
  let open = 0;
  for (const { 0: sign, index } of text.matchAll(/[[\]{}]/g)) {
    open = "[{".includes(sign) ? open + 1 : Math.max(0, open - 1);
    if (open <= MOST_BRACKETS) continue;
    const before = text.slice(0, index).split("\n");
    const reason = `more than ${MOST_BRACKETS} brackets are open here`;
    return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1, reason };
  }
  return undefined;
}

interface Broken {
  readonly text: string;
  readonly document: Document;
  place(offset: number): { readonly line: number; readonly column: number };
}

function explain([error]: readonly YAMLParseError[], { text, document, place }: Broken): Problem | undefined {
  if (error === undefined) return undefined;
  const { code, message } = error;
  const offset = firstSignAt(text, error.pos[0]);
  const sign = text[offset] ?? "";
  const colon = code === "BLOCK_AS_IMPLICIT_KEY" || code === "BLOCK_IN_FLOW" ? secondColon(text, offset) : undefined;
  if (colon !== undefined) return colon;
  const opening = code === "BAD_INDENT" || code === "MISSING_CHAR" ? openingOf(document, error.pos[0]) : undefined;
  if (opening !== undefined) {
    const indentation = indentationProblem(text, { opening, offset });
    if (indentation !== undefined) return indentation;
    const { line, column } = place(opening);
    const mark = nameOf(text[opening]);
    return /[}\]]/.test(sign)
      ? { offset, reason: `"${sign}" closes the ${mark} of line ${line}, column ${column}` }
      : { offset: opening, reason: `the ${mark} that opens here is not closed` };
  }
  const [, reason] = REASONS.find(([pattern]) => pattern.test(`${code} ${message}`)) ?? [];
  return { offset, reason: reason?.replace("SIGN", `"${sign}"`) ?? lowerFirst(message) };
}

const TAB = "a tab in the indentation; use spaces";

/** What is in brackets must be indented further than the key, also the closing bracket. */
function indentationProblem(
  text: string,
  { opening, offset }: { readonly opening: number; readonly offset: number },
): Problem | undefined {
  const line = text.lastIndexOf("\n", offset - 1) + 1;
  const tab = /^ *(?=\t\s*$)/.exec(text.slice(line, offset));
  if (tab) return { offset: line + tab[0].length, reason: TAB };
  if (line <= opening || !isClosed(text, opening)) return undefined;
  const what = /[}\]]/.test(text[offset] ?? "") ? "the closing bracket" : "what is in the brackets";
  return { offset, reason: `indent ${what} further` };
}

const CLOSING: Readonly<Record<string, string>> = { "{": "}", "[": "]" };

/** By the bracket that belongs to it. */
function isClosed(text: string, opening: number): boolean {
  const expected: (string | undefined)[] = [];
  for (const [sign] of text.slice(opening).matchAll(/(?<=[\s{[,:])(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')|[[\]{}]/gs)) {
    if (sign in CLOSING) expected.push(CLOSING[sign]);
    else if (/^[\]}]/.test(sign) && expected.pop() !== sign) return false;
    if (expected.length === 0) return true;
  }
  return false;
}

const WRONG_INDENTATION = "its indentation matches no line above it";

/** In the words of someone who writes YAML; what is not here is said in the words of the package. */
const REASONS: readonly (readonly [error: RegExp, reason: string])[] = [
  [/^TAB_AS_INDENT /, TAB],
  [/^BAD_SCALAR_START /, "a value must not begin with SIGN; write it in quotes"],
  [/^MULTILINE_IMPLICIT_KEY | Implicit map keys need/, 'expected a key followed by ": "'],
  [/^BAD_INDENT | without - indicator/, WRONG_INDENTATION],
  [/ Unexpected flow-(?:map|seq)-end/, "SIGN closes no bracket; write a value that begins with it in quotes"],
  [/ Unexpected block-seq-ind/, "a list item must begin on its own line"],
  [/ at node end/, "unexpected text after the end of a value"],
];

/** Behind the indentation. */
function firstSignAt(text: string, offset: number): number {
  return offset + (/^ */.exec(text.slice(offset, offset + 1_000))?.[0].length ?? 0);
}

/** On a later line, it is a key that is indented further than the one before it. */
function secondColon(text: string, offset: number): Problem | undefined {
  const distance = text.slice(offset).search(/:(?:\s|$)/);
  if (distance === -1) return undefined;
  const colon = offset + distance;
  const line = text.lastIndexOf("\n", colon) + 1;
  if (line > offset) return { offset: firstSignAt(text, line), reason: WRONG_INDENTATION };
  return { offset: colon, reason: 'a second ":" in one line; write the value in quotes' };
}

/** Where the innermost quotation mark or bracket opens whose content ends at an offset without it being closed. */
function openingOf(document: Document, end: number): number | undefined {
  let opening: number | undefined;
  visit(document, (_, node) => {
    if (!isNode(node) || node.range?.[1] !== end) return;
    const isQuoted = isScalar(node) && (node.type === "QUOTE_DOUBLE" || node.type === "QUOTE_SINGLE");
    if (isQuoted || (isCollection(node) && node.flow)) opening = node.range[0];
  });
  return opening;
}

function aliasWithoutAnchor(document: Document): Problem | undefined {
  let problem: Problem | undefined;
  const anchors = new Set<string>();
  visit(document, (_, node) => {
    if (isAlias(node) && !anchors.has(node.source)) {
      const reason = `alias "*${node.source}" has no anchor "&${node.source}" before it; write it in quotes`;
      problem = { offset: node.range?.[0] ?? 0, reason };
      return visit.BREAK;
    }
    if ((isScalar(node) || isCollection(node)) && node.anchor !== undefined) anchors.add(node.anchor);
    return undefined;
  });
  return problem;
}

function nameOf(mark: string | undefined): string {
  return mark === '"' || mark === "'" ? `quotation mark ${mark}` : `bracket "${mark}"`;
}

function lowerFirst(text: string): string {
  return text.slice(0, 1).toLowerCase() + text.slice(1);
}
