/**
 * The lines of keys in a YAML document, which the parser does not report, and keys that occur twice in one map, of which it
 * silently keeps the last.
 *
 * Lines that look like keys of the same map are only candidates: the parser
 * decides. Each candidate is renamed to a unique name, and only candidates that
 * the parser then finds in the same map were duplicates. So text inside a string
 * is never mistaken for a key, and the search for candidates can be simple: by
 * column in block style, by braces in flow style.
 */
import type { ConfigPath } from "../../config/problem.ts";

export interface RepeatedKey {
  readonly path: ConfigPath;
  /** The line of its last occurrence; starts at 1. */
  readonly line: number;
}

/** Finds the line of the value at a path, or of what contains it if it does not exist; lines start at 1. */
export function locateYaml(text: string): (path: ConfigPath) => number {
  const names = new Map<string, Candidate>();
  const start = firstLine(text);
  try {
    const all = new Map<number, Candidate>();
    const marked = withUniqueNames(
      text,
      candidatesIn(text, () => new EveryKey(all), all),
      names,
    );
    const root: unknown = Bun.YAML.parse(marked);
    return (path) => lineIn(root, path, names) ?? start;
  } catch {
    return () => start;
  }
}

function lineIn(root: unknown, path: ConfigPath, names: ReadonlyMap<string, Candidate>): number | undefined {
  let value = root;
  let line: number | undefined;
  for (const step of path) {
    const found = memberAt(value, String(step), names);
    if (found === undefined) return line;
    line = names.get(found.name)?.line ?? firstKeyLine(found.value, names) ?? line;
    value = found.value;
  }
  return line;
}

function memberAt(value: unknown, step: string, names: ReadonlyMap<string, Candidate>) {
  if (typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value))
    return Object.hasOwn(value, step) ? { name: step, value: value[Number(step)] as unknown } : undefined;
  const members: readonly [string, unknown][] = Object.entries(value);
  const found = members.find(([name]) => (names.get(name)?.key ?? name) === step);
  return found && { name: found[0], value: found[1] };
}

/** A member of a list begins with its first key. */
function firstKeyLine(value: unknown, names: ReadonlyMap<string, Candidate>): number | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return names.get(Object.keys(value)[0] ?? "")?.line;
}

/** The first line with content. */
function firstLine(text: string): number {
  const lines = text.split("\n");
  return (
    Math.max(
      0,
      lines.findIndex((line) => !/^\s*(?:#|---|%|$)/.test(line)),
    ) + 1
  );
}

export function findRepeatedKeys(text: string): readonly RepeatedKey[] {
  const repeated = new Map<number, Candidate>();
  const candidates = candidatesIn(text, () => new RepeatedKeys(repeated), repeated);
  if (candidates.length === 0) return [];
  const names = new Map<string, Candidate>();
  const marked = withUniqueNames(text, candidates, names);
  try {
    return repeatedIn(Bun.YAML.parse(marked), names);
  } catch {
    return [];
  }
}

/** A candidate: text that looks like a key of a map. */
interface Candidate {
  readonly key: string;
  readonly line: number;
  /** The offsets of the key in the text. */
  readonly start: number;
  readonly end: number;
}

/** The candidates in what seems to be one map. */
interface Keys {
  add(place: Candidate): void;
}

class EveryKey implements Keys {
  constructor(private readonly candidates: Map<number, Candidate>) {}

  add(place: Candidate): void {
    this.candidates.set(place.start, place);
  }
}

class RepeatedKeys implements Keys {
  private readonly last = new Map<string, Candidate>();

  constructor(private readonly candidates: Map<number, Candidate>) {}

  add(place: Candidate): void {
    const earlier = this.last.get(place.key);
    if (earlier) for (const each of [earlier, place]) this.candidates.set(each.start, each);
    this.last.set(place.key, place);
  }
}

/** In the order of the text. */
function candidatesIn(
  text: string,
  openMap: () => Keys,
  candidates: ReadonlyMap<number, Candidate>,
): readonly Candidate[] {
  findInBlocks(text, openMap);
  findInBraces(text, openMap);
  return [...candidates.values()].sort((left, right) => left.start - right.start);
}

const QUOTED = `"[^"\\\\]*"|'[^']*'`;
const FIRST = "[^\\s\"'#&*!|>%@`{}[\\],?:-]";
const BLOCK_KEY = new RegExp(`^(\\ufeff? *)((?:- +)*)(?:(${QUOTED})\\s*|(${FIRST}(?:[^:]|:(?=\\S))*)):(?=\\s|$)`);
const ITEM = /^( *)-(\s|$)/;
/** Merges other maps into this one, and may occur more than once. */
const MERGE = "<<";

function findInBlocks(text: string, openMap: () => Keys): void {
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
      if (open.at(-1)?.column !== column) open.push({ column, keys: openMap() });
      open.at(-1)?.keys.add(candidateAt(written, offset + column, index + 1));
    }
    offset += line.length + 1;
  }
}

/** Quoted strings, which may contain anything, and the characters that open, separate and close maps and lists. */
const BRACES = /(?<=[\s{[,:]|^)(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')|[{}[\],\n]/g;
const BRACES_KEY = new RegExp(
  `(\\s*)(?:(${QUOTED})\\s*:|(${FIRST}(?:[^:{}[\\],\\n]|:(?=[^\\s,{}[\\]]))*):(?=[\\s,}\\]]|$))`,
  "y",
);

function findInBraces(text: string, openMap: () => Keys): void {
  /** A list has no keys. */
  const open: (Keys | undefined)[] = [];
  let line = 1;
  for (const { 0: sign, index } of text.matchAll(BRACES)) {
    if (sign === "{") open.push(openMap());
    else if (sign === "[") open.push(undefined);
    else if (sign === "}" || sign === "]") open.pop();
    else if (sign !== ",") line += sign.split("\n").length - 1;
    const keys = sign === "{" || sign === "," ? open.at(-1) : undefined;
    if (!keys) continue;
    BRACES_KEY.lastIndex = index + 1;
    const [, space = "", quoted, plain = MERGE] = BRACES_KEY.exec(text) ?? [];
    const written = quoted ?? plain.trimEnd();
    if (written !== MERGE)
      keys.add(candidateAt(written, index + 1 + space.length, line + space.split("\n").length - 1));
  }
}

/** The key without its quotes, which stay around the unique name: a value may follow them without a space. */
function candidateAt(written: string, offset: number, line: number): Candidate {
  const key = /^(["'])(.*)\1$/s.exec(written)?.[2] ?? written;
  const start = offset + (written.length - key.length) / 2;
  return { key, line, start, end: start + key.length };
}

/** Replaces every candidate by a unique name, which is added to `names`. */
function withUniqueNames(text: string, candidates: readonly Candidate[], names: Map<string, Candidate>): string {
  let stem = "key";
  while (text.includes(stem)) stem += "x";
  const pieces: string[] = [];
  let done = 0;
  for (const [index, place] of candidates.entries()) {
    const mark = `${stem}${index}`;
    names.set(mark, place);
    pieces.push(text.slice(done, place.start), mark);
    done = place.end;
  }
  return [...pieces, text.slice(done)].join("");
}

function repeatedIn(root: unknown, names: ReadonlyMap<string, Candidate>): readonly RepeatedKey[] {
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
