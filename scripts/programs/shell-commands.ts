/**
 * Splits a shell script into its simple commands, each as a list of words: the
 * text between separators, keywords, assignments and redirections, also inside
 * `$( … )`. Not a complete shell parser: it only has to find the words of each
 * command in the scripts of tests.
 */

/** Replaces text that is only known at run time: `${…}` of a template, a shell variable. */
export const UNKNOWN = "\u0000";

const KEYWORDS = new Set(["if", "then", "elif", "else", "while", "until", "do", "!", "{", "time", "exec", "command"]);
/** The words after these are not a command, up to the next separator. */
const NOT_COMMANDS = new Set(["for", "case", "fi", "done", "esac", "}", "in", "select", "function"]);
const ASSIGNMENT = /^[A-Za-z_]\w*\+?=/;

export function commandsOfScript(script: string): readonly (readonly string[])[] {
  const found: string[][] = [];
  const functions = new Set([...script.matchAll(/(?:^|[\s;])(\w+)\s*\(\)\s*\{/g)].map(([, name]) => name));
  collect(withoutHereDocuments(script), found);
  return found.map(commandOf).filter(([program]) => program !== undefined && !functions.has(program));
}

function commandOf(words: readonly string[]): readonly string[] {
  let start = 0;
  while (start < words.length && (KEYWORDS.has(words[start] ?? "") || ASSIGNMENT.test(words[start] ?? ""))) start += 1;
  return NOT_COMMANDS.has(words[start] ?? "") ? [] : words.slice(start);
}

function withoutHereDocuments(script: string): string {
  return script.replace(
    /<<-?\s*(['"]?)(\w+)\1([^\n]*\n)[\s\S]*?\n\s*\2(?=\n|$)/g,
    (_whole, _quote, _end, rest) => rest,
  );
}

/** Splits into commands and words; `$( … )` and backticks are collected as separate commands. */
function collect(script: string, found: string[][]): void {
  let words: string[] = [];
  let word: string | undefined;
  const endWord = () => {
    if (word !== undefined) words.push(word);
    word = undefined;
  };
  const endCommand = () => {
    endWord();
    if (words.length > 0) found.push(words);
    words = [];
  };
  for (let at = 0; at < script.length; at++) {
    const character = script[at] ?? "";
    if (character === "\\") {
      at += 1;
      if (script[at] !== "\n") word = `${word ?? ""}${script[at] ?? ""}`;
    } else if (character === "'") {
      const end = endOfQuote(script, at);
      word = `${word ?? ""}${script.slice(at + 1, end)}`;
      at = end;
    } else if (character === '"') {
      const end = endOfQuote(script, at);
      const inside = script.slice(at + 1, end);
      for (const inner of substitutionsOf(inside)) collect(inner, found);
      word = `${word ?? ""}${inside.replaceAll(/\$\w+|\$[{(@*#][\s\S]*/g, UNKNOWN)}`;
      at = end;
    } else if (script.startsWith("$(", at) || script.startsWith("${", at)) {
      const end = endOfBrackets(script, at + 1);
      if (script[at + 1] === "(" && script[at + 2] !== "(") collect(script.slice(at + 2, end), found);
      word = `${word ?? ""}${UNKNOWN}`;
      at = end;
    } else if (character === "$") {
      word = `${word ?? ""}${UNKNOWN}`;
      while (/[\w@*#?!$]/.test(script[at + 1] ?? "")) at += 1;
    } else if (character === "#" && word === undefined) {
      while (at + 1 < script.length && script[at + 1] !== "\n") at += 1;
    } else if (character === "<" || character === ">") {
      if (/^\d+$/.test(word ?? "")) word = undefined;
      endWord();
      const target = /^[<>]*&?\|?\s*("[^"]*"|'[^']*'|[^\s;&|()]*)/.exec(script.slice(at))?.[0] ?? character;
      at += target.length - 1;
    } else if (";|&\n()".includes(character)) endCommand();
    else if (/\s/.test(character)) endWord();
    else word = `${word ?? ""}${character}`;
  }
  endCommand();
}

function substitutionsOf(text: string): readonly string[] {
  const found: string[] = [];
  for (let at = text.indexOf("$("); at >= 0; at = text.indexOf("$(", at + 1)) {
    if (text[at + 2] !== "(") found.push(text.slice(at + 2, endOfBrackets(text, at + 1)));
  }
  return found;
}

/** The end of the quoted text that begins at `start`; double quotes may contain `$( "…" )`. */
function endOfQuote(script: string, start: number): number {
  const quote = script[start] ?? "";
  for (let at = start + 1; at < script.length; at++) {
    if (script[at] === quote) return at;
    if (quote === '"' && script[at] === "\\") at += 1;
    else if (quote === '"' && script.startsWith("$(", at)) at = endOfBrackets(script, at + 1);
  }
  return script.length;
}

function endOfBrackets(script: string, start: number): number {
  const [open, close] = script[start] === "(" ? ["(", ")"] : ["{", "}"];
  let depth = 0;
  for (let at = start; at < script.length; at++) {
    if (script[at] === "'" && open === "(") at = endOfQuote(script, at);
    else if (script[at] === open) depth += 1;
    else if (script[at] === close && --depth === 0) return at;
  }
  return script.length;
}
