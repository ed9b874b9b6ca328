/**
 * Keys that stand twice in one map of a YAML document, of which the parser
 * keeps the last and says nothing.
 *
 * Lines that look like keys of the same map are only suspected: the parser
 * judges. Each suspect gets a name of its own, and only those that the parser
 * then finds side by side in one map were the same key twice. So nothing inside
 * of a text is ever taken for a key, and the search for suspects may be simple:
 * by columns where maps are blocks, by braces where they are not.
 */
import type { ConfigPath } from "../../config/problem.ts";

export interface RepeatedKey {
  readonly path: ConfigPath;
  /** Of the text, where it stands last; counts from 1. */
  readonly line: number;
}

export function findRepeatedKeys(text: string): readonly RepeatedKey[] {
  const suspects = suspectsIn(text);
  if (suspects.length === 0) return [];
  const names = new Map<string, Place>();
  const marked = withMarks(text, suspects, names);
  try {
    return repeatedIn(Bun.YAML.parse(marked), names);
  } catch {
    return [];
  }
}

/** What looks like a key of a map. */
interface Place {
  readonly key: string;
  readonly line: number;
  /** Where the key stands in the text. */
  readonly start: number;
  readonly end: number;
}

/** The places of each key in what seems to be one map. */
class Keys {
  private readonly last = new Map<string, Place>();

  constructor(private readonly suspects: Map<number, Place>) {}

  add(place: Place): void {
    const earlier = this.last.get(place.key);
    if (earlier) for (const each of [earlier, place]) this.suspects.set(each.start, each);
    this.last.set(place.key, place);
  }
}

/** In the order of the text. */
function suspectsIn(text: string): readonly Place[] {
  const suspects = new Map<number, Place>();
  suspectInBlocks(text, suspects);
  suspectInBraces(text, suspects);
  return [...suspects.values()].sort((left, right) => left.start - right.start);
}

const QUOTED = `"[^"\\\\]*"|'[^']*'`;
const FIRST = "[^\\s\"'#&*!|>%@`{}[\\],?:-]";
const BLOCK_KEY = new RegExp(`^(\\ufeff? *)((?:- +)*)(?:(${QUOTED})\\s*|(${FIRST}(?:[^:]|:(?=\\S))*)):(?=\\s|$)`);
const ITEM = /^( *)-(\s|$)/;
/** Merges other maps into this one, and may stand more than once. */
const MERGE = "<<";

function suspectInBlocks(text: string, suspects: Map<number, Place>): void {
  const open: { readonly column: number; readonly keys: Keys }[] = [];
  const closeBehind = (column: number) => {
    while ((open.at(-1)?.column ?? -1) > column) open.pop();
  };
  let offset = 0;
  for (const [index, line] of text.split("\n").entries()) {
    const item = ITEM.exec(line);
    if (item) closeBehind(item[1]?.length ?? 0);
    const [, indent = "", dashes = "", quoted, plain = MERGE] = BLOCK_KEY.exec(line) ?? [];
    const written = quoted ?? plain.trimEnd();
    if (written !== MERGE) {
      const column = indent.length + dashes.length;
      closeBehind(column);
      if (open.at(-1)?.column !== column) open.push({ column, keys: new Keys(suspects) });
      open.at(-1)?.keys.add(placeOf(written, offset + column, index + 1));
    }
    offset += line.length + 1;
  }
}

/** Texts in quotes, which may hold anything, and what opens, parts and closes maps and lists. */
const BRACES = /(?<=[\s{[,:]|^)(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')|[{}[\],\n]/g;
const BRACES_KEY = new RegExp(
  `(\\s*)(?:(${QUOTED})\\s*:|(${FIRST}(?:[^:{}[\\],\\n]|:(?=[^\\s,{}[\\]]))*):(?=[\\s,}\\]]|$))`,
  "y",
);

function suspectInBraces(text: string, suspects: Map<number, Place>): void {
  /** A list has no keys. */
  const open: (Keys | undefined)[] = [];
  let line = 1;
  for (const { 0: sign, index } of text.matchAll(BRACES)) {
    if (sign === "{") open.push(new Keys(suspects));
    else if (sign === "[") open.push(undefined);
    else if (sign === "}" || sign === "]") open.pop();
    else if (sign !== ",") line += sign.split("\n").length - 1;
    const keys = sign === "{" || sign === "," ? open.at(-1) : undefined;
    if (!keys) continue;
    BRACES_KEY.lastIndex = index + 1;
    const [, space = "", quoted, plain = MERGE] = BRACES_KEY.exec(text) ?? [];
    const written = quoted ?? plain.trimEnd();
    if (written !== MERGE) keys.add(placeOf(written, index + 1 + space.length, line + space.split("\n").length - 1));
  }
}

/** Without the quotes, which stay around any name: behind them a value may follow at once. */
function placeOf(written: string, offset: number, line: number): Place {
  const key = /^(["'])(.*)\1$/s.exec(written)?.[2] ?? written;
  const start = offset + (written.length - key.length) / 2;
  return { key, line, start, end: start + key.length };
}

/** The text with a name of its own for every suspect, which `names` learns. */
function withMarks(text: string, suspects: readonly Place[], names: Map<string, Place>): string {
  let stem = "key";
  while (text.includes(stem)) stem += "x";
  const pieces: string[] = [];
  let done = 0;
  for (const [index, place] of suspects.entries()) {
    const mark = `${stem}${index}`;
    names.set(mark, place);
    pieces.push(text.slice(done, place.start), mark);
    done = place.end;
  }
  return [...pieces, text.slice(done)].join("");
}

function repeatedIn(root: unknown, names: ReadonlyMap<string, Place>): readonly RepeatedKey[] {
  const repeated: RepeatedKey[] = [];
  const seen = new Set<object>();
  const visit = (value: unknown, path: ConfigPath): void => {
    if (typeof value !== "object" || value === null || seen.has(value)) return;
    seen.add(value);
    const members = Object.entries(value);
    const keys = new Map<string, number[]>();
    for (const [name] of members) {
      const place = names.get(name);
      if (place) keys.set(place.key, [...(keys.get(place.key) ?? []), place.line]);
    }
    for (const [key, lines] of keys) {
      if (lines.length > 1) repeated.push({ path: [...path, key], line: Math.max(...lines) });
    }
    for (const [name, member] of members) {
      visit(member, [...path, Array.isArray(value) ? Number(name) : (names.get(name)?.key ?? name)]);
    }
  };
  visit(root, []);
  return repeated;
}
