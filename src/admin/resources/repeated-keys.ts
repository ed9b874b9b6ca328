/**
 * Keys that stand twice in one map of a YAML document, of which the parser
 * keeps the last and says nothing.
 *
 * Lines that look like keys of the same map are only suspected: the parser
 * judges. Each suspect gets a name of its own, and only those that the parser
 * then finds side by side in one map were the same key twice. So nothing inside
 * of a text or a block is ever taken for a key; what is repeated within braces
 * on one line is not suspected, and stays unnoticed.
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

/** A line that looks like a key of a map. */
interface Place {
  readonly key: string;
  readonly line: number;
  /** Where the key stands in the text. */
  readonly start: number;
  readonly end: number;
}

const QUOTED = `"[^"\\\\]*"|'[^']*'`;
const PLAIN = "[^\\s\"'#&*!|>%@`{}[\\],?:-](?:[^:]|:(?=\\S))*?";
const KEY = new RegExp(`^(\\ufeff? *)((?:- +)*)(${QUOTED}|${PLAIN})\\s*:(?=\\s|$)`);
const ITEM = /^( *)-(\s|$)/;
/** Merges other maps into this one, and may stand more than once. */
const MERGE = "<<";

/** In each map, by its column, the keys met so far. */
interface OpenMap {
  readonly column: number;
  readonly places: Map<string, Place>;
}

/** Places of the same key in what seems to be the same map, in the order of the text. */
function suspectsIn(text: string): readonly Place[] {
  const suspects = new Set<Place>();
  const open: OpenMap[] = [];
  const closeBehind = (column: number) => {
    while ((open.at(-1)?.column ?? -1) > column) open.pop();
  };
  let offset = 0;
  for (const [index, line] of text.split("\n").entries()) {
    const item = ITEM.exec(line);
    if (item) closeBehind(item[1]?.length ?? 0);
    const [, indent = "", dashes = "", written] = KEY.exec(line) ?? [];
    if (written !== undefined && written !== MERGE) {
      const column = indent.length + dashes.length;
      const place = {
        key: written.replace(/^(["'])(.*)\1$/, "$2"),
        line: index + 1,
        start: offset + column,
        end: offset + column + written.length,
      };
      closeBehind(column);
      if (open.at(-1)?.column !== column) open.push({ column, places: new Map() });
      const places = open.at(-1)?.places;
      const earlier = places?.get(place.key);
      if (earlier) suspects.add(earlier).add(place);
      places?.set(place.key, place);
    }
    offset += line.length + 1;
  }
  return [...suspects].sort((left, right) => left.start - right.start);
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
