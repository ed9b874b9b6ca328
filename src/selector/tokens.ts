/**
 * Splits selector text into symbols, words and strings. Which words are labels
 * and which are operators depends on their position: the parser decides.
 */
export type Token = { readonly position: number } & (
  | { readonly kind: "symbol"; readonly text: string }
  | { readonly kind: "word"; readonly text: string }
  | { readonly kind: "string"; readonly text: string }
  | { readonly kind: "end"; readonly text: "" }
);

/** The first error in a selector; positions count characters from 0. */
export interface SelectorError {
  readonly position: number;
  readonly expected: string;
  readonly found: string;
}

export type Tokens =
  | { readonly ok: true; readonly tokens: readonly Token[] }
  | { readonly ok: false; readonly error: SelectorError };

const TOKEN = /[ \t]*(?:(==|!=|&&|\|\||[!(){},])|([A-Za-z0-9_./-]+)|"([^"]*)"|'([^']*)'|$)/y;
const BLANKS = /[ \t]*/y;

export function tokenize(text: string): Tokens {
  const tokens: Token[] = [];
  let offset = 0;
  for (;;) {
    BLANKS.lastIndex = offset;
    const position = offset + (BLANKS.exec(text)?.[0].length ?? 0);
    TOKEN.lastIndex = offset;
    const match = TOKEN.exec(text);
    if (!match) return { ok: false, error: badCharacter(text, position) };

    const [whole, symbol, word, double, single] = match;
    offset += whole.length;
    const string = double ?? single;
    if (symbol !== undefined) tokens.push({ kind: "symbol", text: symbol, position });
    else if (word !== undefined) tokens.push({ kind: "word", text: word, position });
    else if (string !== undefined) tokens.push({ kind: "string", text: string, position });
    else return { ok: true, tokens: [...tokens, { kind: "end", text: "", position }] };
  }
}

function badCharacter(text: string, position: number): SelectorError {
  const character = text.charAt(position);
  const isQuote = character === '"' || character === "'";
  const expected = isQuote ? `a closing ${character}` : (DOUBLED[character] ?? "a label, a string or an operator");
  return { position: isQuote ? text.length : position, expected, found: isQuote ? "the end" : `"${character}"` };
}

const DOUBLED: Readonly<Record<string, string>> = { "=": '"=="', "&": '"&&"', "|": '"||"' };
