/** A parser of the part of PromQL that our alert rules use: it refuses everything else. */
export type PromqlNode =
  | { readonly kind: "number"; readonly value: number }
  | { readonly kind: "metric"; readonly name: string; readonly range?: string }
  | { readonly kind: "call" | "operation"; readonly name: string; readonly parts: readonly PromqlNode[] };

const AGGREGATIONS = new Set(["sum", "min", "max", "avg", "count"]);
/** Functions of a range, of an instant vector, and of a number. */
const OF_RANGE = new Set(["rate", "increase", "delta", "deriv", "min_over_time", "max_over_time", "changes"]);
const FUNCTIONS = new Set([...OF_RANGE, "absent", "vector"]);
/** The loosest first. */
const OPERATORS = [["or"], ["and", "unless"], ["==", "!=", "<=", ">=", "<", ">"], ["+", "-"], ["*", "/"]];
const TOKEN = /\s*(?:(\d+(?:\.\d+)?(?![\w.]))|([a-zA-Z_:][\w:]*)|(\[\d+[smhd]\])|(==|!=|<=|>=|[-+*/<>(),]))/y;

export function parsePromql(text: string): PromqlNode {
  const parser = new Parser(tokensOf(text));
  const node = parser.operation(0);
  if (parser.next !== undefined) throw new Error(`Unexpected "${parser.next}" in "${text}"`);
  return node;
}

function tokensOf(text: string): readonly string[] {
  const tokens: string[] = [];
  let at = 0;
  while (at < text.trimEnd().length) {
    TOKEN.lastIndex = at;
    const found = TOKEN.exec(text);
    if (found === null) throw new Error(`Cannot read "${text.slice(at)}"`);
    tokens.push(found[0].trim());
    at = TOKEN.lastIndex;
  }
  return tokens;
}

class Parser {
  private at = 0;

  constructor(private readonly tokens: readonly string[]) {}

  get next(): string | undefined {
    return this.tokens[this.at];
  }

  operation(level: number): PromqlNode {
    const operators = OPERATORS[level];
    if (operators === undefined) return this.operand();
    let left = this.operation(level + 1);
    while (this.next !== undefined && operators.includes(this.next)) {
      const name = this.take();
      if (this.next === "on" || this.next === "ignoring") this.labels();
      left = { kind: "operation", name, parts: [left, this.operation(level + 1)] };
    }
    return left;
  }

  private operand(): PromqlNode {
    const token = this.take();
    if (token === "(") {
      const inner = this.operation(0);
      this.expect(")");
      return inner;
    }
    if (/^\d/.test(token)) return { kind: "number", value: Number(token) };
    if (!/^[a-zA-Z_:]/.test(token)) throw new Error(`Unexpected "${token}"`);
    if (AGGREGATIONS.has(token)) {
      if (this.next === "by" || this.next === "without") this.labels();
      return { kind: "call", name: token, parts: [this.argument()] };
    }
    if (this.next === "(") return this.call(token);
    const range = this.next?.startsWith("[") ? this.take() : undefined;
    return { kind: "metric", name: token, ...(range === undefined ? {} : { range }) };
  }

  private call(name: string): PromqlNode {
    if (!FUNCTIONS.has(name)) throw new Error(`Unknown function "${name}"`);
    const argument = this.argument();
    const isRange = argument.kind === "metric" && argument.range !== undefined;
    if (OF_RANGE.has(name) !== isRange) throw new Error(`Wrong argument of "${name}"`);
    return { kind: "call", name, parts: [argument] };
  }

  private argument(): PromqlNode {
    this.expect("(");
    const inner = this.operation(0);
    this.expect(")");
    return inner;
  }

  /** `by (a, b)` */
  private labels(): void {
    this.take();
    this.expect("(");
    do {
      if (!/^[a-zA-Z_]\w*$/.test(this.take())) throw new Error("A label is missing");
    } while (this.next === "," && this.take());
    this.expect(")");
  }

  private take(): string {
    const token = this.next;
    if (token === undefined) throw new Error("Unexpected end");
    this.at += 1;
    return token;
  }

  private expect(token: string): void {
    if (this.take() !== token) throw new Error(`"${token}" is missing`);
  }
}
