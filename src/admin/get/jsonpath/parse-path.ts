/** Reads one JSONPath: `.items[*].metadata.labels['a.b']`, `.items[?(@.spec.cidr=="10.0.0.0/24")]`. */
import { quoted } from "../../../quote.ts";
import { type Filter, type JsonPath, OPERATORS, type Operand, type Step, TemplateError } from "./template.ts";

const UNSUPPORTED = {
  recursive: 'recursive descent ("..") is not supported; write the whole path',
  union: 'unions ("[a,b]") are not supported; write several expressions',
  step: 'slices with a step ("[a:b:c]") are not supported; use [a:b]',
  regex: 'regular expressions ("=~") are not supported; use ==, !=, <, <=, > or >=',
  logic: '"&&" and "||" are not supported in filters; use one comparison, or several filters one after another',
} as const;

/** A position in a text. */
export class TextReader {
  private offset = 0;

  constructor(private readonly text: string) {}

  get isAtEnd(): boolean {
    return this.offset >= this.text.length;
  }

  isAt(text: string): boolean {
    return this.text.startsWith(text, this.offset);
  }

  take(text: string): boolean {
    if (!this.isAt(text)) return false;
    this.offset += text.length;
    return true;
  }

  demand(text: string): void {
    if (!this.take(text)) throw this.unexpected(`"${text}"`);
  }

  match(pattern: RegExp): string | undefined {
    const sticky = new RegExp(pattern.source, "y");
    sticky.lastIndex = this.offset;
    const found = sticky.exec(this.text)?.[0];
    this.offset += found?.length ?? 0;
    return found;
  }

  /** A whole word: `end`, but not the start of `ending`. */
  takeWord(word: string): boolean {
    return this.match(new RegExp(`${word}(?![\\w.])`)) !== undefined;
  }

  takeUntil(text: string): string {
    const found = this.text.indexOf(text, this.offset);
    const end = found < 0 ? this.text.length : found;
    const taken = this.text.slice(this.offset, end);
    this.offset = end;
    return taken;
  }

  skipSpace(): void {
    this.match(/\s*/);
  }

  /** A text in single or double quotes, with the usual escapes. */
  takeQuoted(): string | undefined {
    const quoted = this.match(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/s);
    if (quoted === undefined) return undefined;
    return quoted.slice(1, -1).replace(/\\(.)/gs, (_, character: string) => ESCAPES[character] ?? character);
  }

  unexpected(expected: string): TemplateError {
    const found = this.isAtEnd ? "the end" : quoted(this.text.slice(this.offset, this.offset + 20));
    return new TemplateError(`position ${this.offset}: expected ${expected}, found ${found}`);
  }
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" };

export function parsePath(reader: TextReader): JsonPath {
  const from = reader.take("$") ? "document" : "current";
  const isMarked = from === "document" || reader.take("@");
  const steps: Step[] = [];
  for (let step = readStep(reader); step !== undefined; step = readStep(reader)) steps.push(...step);
  if (!isMarked && steps.length === 0 && !reader.take(".")) {
    throw reader.unexpected('a path such as .metadata.name, a text in quotes, "range" or "end"');
  }
  return { from, steps };
}

/** `undefined`: the path ends here. One step, or none for a dot before a bracket. */
function readStep(reader: TextReader): readonly Step[] | undefined {
  if (reader.isAt("..")) throw new TemplateError(UNSUPPORTED.recursive);
  if (reader.take("[")) return [readBracket(reader)];
  if (!reader.isAt(".")) return undefined;
  if (reader.match(/\.(?=\[)/) !== undefined) return [];
  if (reader.take(".*")) return [{ kind: "every" }];
  // A backslash takes away the meaning of the next character: `.metadata.labels.a\.b`.
  const name = reader.match(/\.(?:[^\s.[\](){}\\"'$@=<>!,|&?]|\\.)+/s);
  return name === undefined ? undefined : [{ kind: "field", name: name.slice(1).replace(/\\(.)/gs, "$1") }];
}

function readBracket(reader: TextReader): Step {
  reader.skipSpace();
  const step = readSubscript(reader);
  reader.skipSpace();
  if (reader.isAt(",")) throw new TemplateError(UNSUPPORTED.union);
  reader.demand("]");
  return step;
}

const NUMBER = /-?\d+/;

function readSubscript(reader: TextReader): Step {
  if (reader.take("*")) return { kind: "every" };
  if (reader.take("?(")) {
    const filter = readFilter(reader);
    reader.demand(")");
    return { kind: "filter", filter };
  }
  const name = reader.takeQuoted();
  if (name !== undefined) return { kind: "field", name };
  const start = reader.match(NUMBER);
  if (!reader.take(":")) {
    if (start === undefined) throw reader.unexpected('an index, "*", a name in quotes or a filter "?(…)"');
    return { kind: "index", index: Number(start) };
  }
  const end = reader.match(NUMBER);
  if (reader.isAt(":")) throw new TemplateError(UNSUPPORTED.step);
  return {
    kind: "slice",
    start: start === undefined ? undefined : Number(start),
    end: end === undefined ? undefined : Number(end),
  };
}

function readFilter(reader: TextReader): Filter {
  const left = readOperand(reader);
  if (reader.isAt("=~")) throw new TemplateError(UNSUPPORTED.regex);
  const operator = OPERATORS.find((each) => reader.take(each));
  if (operator === undefined) {
    refuseLogic(reader);
    if (left.kind === "literal") throw reader.unexpected(OPERATORS.join(", "));
    return { kind: "exists", path: left.path };
  }
  const right = readOperand(reader);
  refuseLogic(reader);
  return { kind: "compare", operator, left, right };
}

function refuseLogic(reader: TextReader): void {
  if (reader.isAt("&&") || reader.isAt("||")) throw new TemplateError(UNSUPPORTED.logic);
}

function readOperand(reader: TextReader): Operand {
  reader.skipSpace();
  const operand = readLiteral(reader) ?? ({ kind: "path", path: parsePath(reader) } as const);
  reader.skipSpace();
  return operand;
}

function readLiteral(reader: TextReader): Operand | undefined {
  const text = reader.takeQuoted();
  if (text !== undefined) return { kind: "literal", value: text };
  if (reader.takeWord("true")) return { kind: "literal", value: true };
  if (reader.takeWord("false")) return { kind: "literal", value: false };
  const number = reader.match(/-?\d+(\.\d+)?/);
  return number === undefined ? undefined : { kind: "literal", value: Number(number) };
}
