/**
 * Parses selector text.
 *
 *   expr := and ('||' and)*     and := operation ('&&' operation)*     operation := '!'* atom
 *   atom := 'all()' | 'global()' | 'has(' label ')' | '(' expr ')' | label comparison string | label ['not'] 'in' '{' strings '}'
 *
 * `!` binds to the atom that follows: `!a == 'x'` is `!(a == 'x')`. Empty text
 * is `all()`. Invalid text is returned as an error, with its position and what was expected there.
 */

import { quoted } from "../quote.ts";
import type { Comparison, Selector } from "./selector.ts";
import { type SelectorError, type Token, tokenize } from "./tokens.ts";

export type ParsedSelector =
  | { readonly ok: true; readonly selector: Selector }
  | { readonly ok: false; readonly error: SelectorError };

const LONGEST_LABEL = 512;
/** Deeper than any real selector; prevents malicious text from exhausting the stack. */
const DEEPEST_NESTING = 100;

const COMPARISONS: Readonly<Record<string, Comparison>> = {
  "==": "==",
  "!=": "!=",
  contains: "contains",
  startswith: "starts with",
  endswith: "ends with",
};

const OPERATORS = "==, !=, in, not in, contains, starts with or ends with";

export function parseSelector(text: string): ParsedSelector {
  // The selector of nearly every pool: a new process does not need to compile the patterns.
  if (text === "all()") return { ok: true, selector: { kind: "all" } };

  const cut = tokenize(text);
  if (!cut.ok) return cut;
  if (cut.tokens.length === 1) return { ok: true, selector: { kind: "all" } };

  try {
    return { ok: true, selector: new Parser(cut.tokens).readAll() };
  } catch (error) {
    if (error instanceof Unexpected) return { ok: false, error: error.reason };
    throw error;
  }
}

/** `position 5: expected a string, found "}"`, for error messages. */
export function formatSelectorError({ position, expected, found }: SelectorError): string {
  return `position ${position}: expected ${expected}, found ${found}`;
}

/** Ends the recursive descent; never leaves this file. */
class Unexpected extends Error {
  readonly reason: SelectorError;

  constructor(token: Token, expected: string) {
    super(expected);
    const found =
      token.kind === "end"
        ? "the end"
        : token.kind === "string"
          ? `the string ${quoted(token.text)}`
          : `${quoted(token.text)}`;
    this.reason = { position: token.position, expected, found };
  }
}

class Parser {
  readonly #tokens: readonly Token[];
  #index = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  readAll(): Selector {
    const selector = this.#readChain("or");
    if (this.#here().kind !== "end") throw new Unexpected(this.#here(), '"&&", "||" or the end');
    return selector;
  }

  #readChain(kind: "or" | "and"): Selector {
    const readOne = () => (kind === "or" ? this.#readChain("and") : this.#readOperation());
    const first = readOne();
    const operands = [first];
    while (this.#take(kind === "or" ? "||" : "&&")) operands.push(readOne());
    return operands.length === 1 ? first : { kind, operands };
  }

  #readOperation(): Selector {
    let isNegated = false;
    while (this.#take("!")) isNegated = !isNegated;
    const operand = this.#readAtom();
    return isNegated ? { kind: "not", operand } : operand;
  }

  #readAtom(): Selector {
    if (this.#here().kind === "symbol" && this.#here().text === "(") return this.#readGroup();

    const name = this.#readWord("a label, all(), has(), global(), ! or (");
    if (this.#here().kind === "symbol" && this.#here().text === "(") return this.#readCall(name);
    if (name.text.length > LONGEST_LABEL) throw new Unexpected(name, `a label of at most ${LONGEST_LABEL} characters`);
    return this.#readLabelTest(name.text);
  }

  #readGroup(): Selector {
    this.#depth += 1;
    if (this.#depth > DEEPEST_NESTING)
      throw new Unexpected(this.#here(), `at most ${DEEPEST_NESTING} nested parentheses`);
    this.#demand("(");
    const inner = this.#readChain("or");
    this.#demand(")");
    this.#depth -= 1;
    return inner;
  }

  #readCall(name: Token): Selector {
    if (name.text !== "all" && name.text !== "global" && name.text !== "has") {
      throw new Unexpected(name, "all(), global() or has(label)");
    }
    this.#demand("(");
    if (name.text === "has") {
      const label = this.#readWord("a label");
      if (label.text.length > LONGEST_LABEL)
        throw new Unexpected(label, `a label of at most ${LONGEST_LABEL} characters`);
      this.#demand(")");
      return { kind: "has", label: label.text };
    }
    this.#demand(")");
    return { kind: name.text };
  }

  #readLabelTest(label: string): Selector {
    const operator = this.#readOperator();
    if (operator === "in" || operator === "not in") {
      return { kind: "member", operator, label, values: this.#readStrings() };
    }
    return { kind: "compare", operator, label, value: this.#readString() };
  }

  #readOperator(): Comparison | "in" | "not in" {
    const token = this.#next();
    if (token.kind === "end" || token.kind === "string") throw new Unexpected(token, OPERATORS);

    if (token.text === "in") return "in";
    if (token.text === "notin") return "not in";
    if (token.text === "not") {
      this.#demandWord("in");
      return "not in";
    }
    if (token.text === "starts" || token.text === "ends") {
      this.#demandWord("with");
      return `${token.text} with`;
    }
    const comparison = Object.hasOwn(COMPARISONS, token.text) ? COMPARISONS[token.text] : undefined;
    if (!comparison) throw new Unexpected(token, OPERATORS);
    return comparison;
  }

  #readStrings(): readonly string[] {
    this.#demand("{");
    if (this.#take("}")) return [];
    const values = [this.#readString()];
    while (this.#take(",")) values.push(this.#readString());
    if (!this.#take("}")) throw new Unexpected(this.#here(), '"," or "}"');
    return values;
  }

  #readString(): string {
    const token = this.#next();
    if (token.kind !== "string") throw new Unexpected(token, "a string in quotes");
    return token.text;
  }

  #readWord(expected: string): Token {
    const token = this.#next();
    if (token.kind !== "word") throw new Unexpected(token, expected);
    return token;
  }

  #demandWord(text: string): void {
    const token = this.#next();
    if (token.kind !== "word" || token.text !== text) throw new Unexpected(token, `"${text}"`);
  }

  #demand(symbol: string): void {
    if (!this.#take(symbol)) throw new Unexpected(this.#here(), `"${symbol}"`);
  }

  #take(symbol: string): boolean {
    const token = this.#here();
    if (token.kind !== "symbol" || token.text !== symbol) return false;
    this.#index += 1;
    return true;
  }

  #next(): Token {
    const token = this.#here();
    this.#index += 1;
    return token;
  }

  #here(): Token {
    return this.#tokens[this.#index] ?? { kind: "end", text: "", position: 0 };
  }
}
