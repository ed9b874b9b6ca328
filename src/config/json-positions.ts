/**
 * The line and column of each value in a JSON text, and of the first syntax
 * error. `JSON.parse` reports neither.
 *
 * Does not interpret values: that is left to `JSON.parse`.
 */

import { MAXIMUM_NESTING } from "../parse-json.ts";
import { quoted } from "../quote.ts";
import type { ConfigPath } from "./problem.ts";

export interface Position {
  /** Both start at 1. */
  readonly line: number;
  readonly column: number;
}

export type JsonPositions =
  | {
      readonly ok: true;
      find(path: ConfigPath): Position;
      /** Members whose name occurs more than once in their object, each with its last position. */
      readonly repeated: readonly { readonly path: ConfigPath; readonly position: Position }[];
    }
  | { readonly ok: false; readonly position: Position; readonly reason: string };

interface Node {
  readonly offset: number;
  readonly members: ReadonlyMap<string, Node>;
}

const NO_MEMBERS: ReadonlyMap<string, Node> = new Map();

export function locateJson(text: string): JsonPositions {
  const positionAt = positionsIn(text);
  try {
    const scanner = new Scanner(text);
    const root = scanner.document();
    return {
      ok: true,
      find: (path) => positionAt(offsetOf(root, path)),
      repeated: scanner.repeated.map(({ path, offset }) => ({ path, position: positionAt(offset) })),
    };
  } catch (failure) {
    if (!(failure instanceof JsonSyntaxError)) throw failure;
    return { ok: false, position: positionAt(failure.offset), reason: failure.message };
  }
}

/** A path that does not exist (a missing field) has the position of the last object on it. */
function offsetOf(root: Node, path: ConfigPath): number {
  let node = root;
  for (const step of path) {
    const next = node.members.get(String(step)) ?? inAnyCase(node, String(step));
    if (next === undefined) return node.offset;
    node = next;
  }
  return node.offset;
}

function inAnyCase(node: Node, name: string): Node | undefined {
  const wanted = name.toLowerCase();
  for (const [key, member] of node.members) if (key.toLowerCase() === wanted) return member;
  return undefined;
}

/** A file can have many problems: the beginnings of its lines are found once, with the first. */
function positionsIn(text: string): (offset: number) => Position {
  let starts: readonly number[] | undefined;
  return (offset) => {
    starts ??= [0, ...text.matchAll(/\n/g).map(({ index }) => index + 1)];
    let [low, high] = [0, starts.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle;
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
  };
}

class JsonSyntaxError extends Error {
  constructor(
    readonly offset: number,
    message: string,
  ) {
    super(message);
  }
}

class Scanner {
  readonly repeated: { readonly path: ConfigPath; readonly offset: number }[] = [];
  private offset = 0;
  private readonly path: (string | number)[] = [];

  constructor(private readonly text: string) {}

  document(): Node {
    // A byte order mark is not JSON, but editors write it.
    if (this.text.charCodeAt(0) === 0xfeff)
      throw new JsonSyntaxError(0, "the file begins with a byte order mark; remove it");
    const node = this.value();
    this.space();
    if (this.offset < this.text.length) throw this.unexpected("the end");
    return node;
  }

  private value(): Node {
    if (this.path.length > MAXIMUM_NESTING)
      throw new JsonSyntaxError(this.offset, `it is nested more than ${MAXIMUM_NESTING} levels deep`);
    this.space();
    const offset = this.offset;
    const first = this.text[offset];
    if (first === "{") return { offset, members: this.object() };
    if (first === "[") return { offset, members: this.list() };
    if (first === '"') this.string();
    else this.word();
    return { offset, members: NO_MEMBERS };
  }

  private object(): ReadonlyMap<string, Node> {
    const members = new Map<string, Node>();
    const repeated = new Set<string>();
    this.offset += 1;
    if (this.taken("}")) return members;
    do {
      this.space();
      if (this.text[this.offset] !== '"') throw this.unexpected("a name in double quotes");
      const name = this.string();
      if (!this.taken(":")) throw this.unexpected('":"');
      if (members.has(name)) repeated.add(name);
      members.set(name, this.inside(name));
    } while (this.taken(","));
    if (!this.taken("}")) throw this.unexpected('"," or "}"');
    for (const name of repeated) {
      this.repeated.push({ path: [...this.path, name], offset: members.get(name)?.offset ?? 0 });
    }
    return members;
  }

  private list(): ReadonlyMap<string, Node> {
    const members = new Map<string, Node>();
    this.offset += 1;
    if (this.taken("]")) return members;
    do members.set(String(members.size), this.inside(members.size));
    while (this.taken(","));
    if (!this.taken("]")) throw this.unexpected('"," or "]"');
    return members;
  }

  private inside(step: string | number): Node {
    this.path.push(step);
    const node = this.value();
    this.path.pop();
    return node;
  }

  private string(): string {
    const start = this.offset;
    const pattern = /"(?:[^"\\\n\r]|\\.)*"/y;
    pattern.lastIndex = start;
    const found = pattern.exec(this.text)?.[0];
    if (found === undefined)
      throw new JsonSyntaxError(start, "a string starts here and has no closing quote on its line");
    try {
      const value: unknown = JSON.parse(found);
      this.offset += found.length;
      return String(value);
    } catch {
      throw new JsonSyntaxError(
        start,
        "this string contains a character or an escape sequence that JSON does not allow",
      );
    }
  }

  private word(): void {
    const pattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|(?:true|false|null)(?!\w)/y;
    pattern.lastIndex = this.offset;
    const found = pattern.exec(this.text)?.[0];
    if (found === undefined) throw this.unexpected("a value");
    this.offset += found.length;
  }

  private taken(character: string): boolean {
    this.space();
    if (this.text[this.offset] !== character) return false;
    this.offset += 1;
    return true;
  }

  private space(): void {
    while (" \t\r\n".includes(this.text[this.offset] ?? "x")) this.offset += 1;
  }

  private unexpected(wanted: string): JsonSyntaxError {
    const found = this.offset < this.text.length ? quoted(this.text[this.offset]) : "the end of the file";
    return new JsonSyntaxError(this.offset, `expected ${wanted}, found ${found}`);
  }
}
