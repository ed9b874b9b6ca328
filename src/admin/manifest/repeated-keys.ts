/**
 * The lines of values in a YAML document, and keys that occur twice in one map: the parser of the runtime, which reads the
 * values, reports no lines and silently keeps the last of such keys.
 */
import { isMap, isNode, isScalar, isSeq, LineCounter, type Node, type Pair, parseDocument } from "yaml";
import type { ConfigPath } from "../../config/problem.ts";
import { isObject } from "../../model/shape.ts";

export interface RepeatedKey {
  readonly path: ConfigPath;
  /** The line of its last occurrence; starts at 1. */
  readonly line: number;
}

interface Located {
  readonly root: Node | null;
  readonly isValid: boolean;
  lineOf(node: unknown): number;
}

function locate(text: string): Located {
  const lines = new LineCounter();
  // Not strict, as the parser of the runtime is not. Keys are compared as they are written.
  const options = {
    strict: false,
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: "silent",
    schema: "failsafe",
  } as const;
  // The parser of the runtime also ends a line at a carriage return alone.
  const { contents, errors } = parseDocument(text.replace(/\r(?!\n)/g, "\n"), { ...options, lineCounter: lines });
  return {
    root: contents,
    isValid: errors.length === 0,
    lineOf: (node) => lines.linePos((isNode(node) ? node.range?.[0] : undefined) ?? 0).line,
  };
}

/** Finds the line of the value at a path, or of what contains it if it does not exist; lines start at 1. */
export function locateYaml(text: string): (path: ConfigPath) => number {
  const { root, lineOf } = locate(text);
  return (path) => {
    let [value, line]: [unknown, number] = [root, lineOf(root)];
    for (const step of path) {
      const pair = isMap(value) ? value.items.findLast(({ key }) => nameOf(key) === String(step)) : undefined;
      const place = pair?.key ?? (isSeq(value) ? value.items[Number(step)] : undefined);
      if (place === undefined) break;
      line = lineOf(place);
      value = pair ? pair.value : place;
    }
    return line;
  };
}

/** Undefined if the document is not valid, which the parser of the runtime may have overlooked. */
export function findRepeatedKeys(text: string): readonly RepeatedKey[] | undefined {
  const { root, isValid, lineOf } = locate(text);
  return isValid ? repeatedIn(root, { path: [], lineOf }) : undefined;
}

/** An alias is not followed: what it stands for is found at its anchor. */
function repeatedIn(
  node: unknown,
  { path, lineOf }: { readonly path: ConfigPath; readonly lineOf: Located["lineOf"] },
): readonly RepeatedKey[] {
  const inside = (step: string | number, value: unknown) => repeatedIn(value, { path: [...path, step], lineOf });
  if (isSeq(node)) return node.items.flatMap((item, index) => inside(index, item));
  if (!isMap(node)) return [];
  const pairs = Map.groupBy(node.items.filter(isNotMerge), ({ key }) => nameOf(key));
  const own = [...pairs].flatMap(([name, all]) =>
    all.length > 1 ? { path: [...path, name], line: lineOf(all.at(-1)?.key) } : [],
  );
  return [...own, ...node.items.flatMap(({ key, value }) => inside(nameOf(key), value))];
}

/** Merges other maps into this one, and may occur more than once. */
function isNotMerge({ key }: Pair): boolean {
  return !(isScalar(key) && key.type === "PLAIN" && key.value === "<<");
}

function nameOf(key: unknown): string {
  return String(isScalar(key) ? key.value : key);
}

/**
 * Whether a text can have repeated keys, which is known fifty times sooner than whether it has: a member with a value has a key
 * with a colon, so a text with as many colons as such members has one key for each. Not seen: a key that has no colon the first
 * time, as in `{a, a: 1}`.
 */
export function canRepeatKeys(text: string, value: unknown): boolean {
  // An alias adds members without colons.
  if (/(?:^|[\s[{,:])\*/.test(text)) return true;
  const shortened = text.replace(WITHOUT_KEYS, "$1$2");
  // In brackets, what looks like such a line can be part of a text, and keys can follow it.
  const others = CAN_HOLD_KEYS.test(shortened) ? text : shortened;
  // A key without a value may have no colon: `{a}` and `? a`.
  const members = membersIn(value, /[{?]/.test(others) ? "with a value" : "all");
  return (others.match(COLON)?.length ?? 0) !== members;
}

/** Lines of comments, and values in quotes that are alone on their line behind a plain key; only a line feed begins a line. */
const WITHOUT_KEYS =
  /(^|\n)(?:[ \t]*#.*|( *(?:- +)*[\w./][\w./-]*: +)(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\n]|'')*') *(?=\n|$))/g;
/** Brackets that are not empty, and the sign of a key that is written without a colon. */
const CAN_HOLD_KEYS = /\{(?!\s*\})|\[(?!\s*\])|\?/;
/** Every colon that could follow a key, also those in texts. */
const COLON = /:(?=[\s,[\]{}]|$)|(?<=["'\]}]\s*):/g;

function membersIn(value: unknown, counted: "all" | "with a value"): number {
  const countIn = (members: readonly unknown[]) =>
    members.reduce<number>((sum, member) => sum + membersIn(member, counted), 0);
  if (Array.isArray(value)) return countIn(value);
  if (!isObject(value)) return 0;
  const members = Object.values(value);
  return countIn(members) + members.filter((member) => counted === "all" || member !== null).length;
}
