/**
 * Finds the programs that a command starts: its first word, and the command
 * that a program such as `nsenter … ip` or `sh -c "…"` starts.
 * Pure: works on the words of the source text, known or unknown.
 */
import { commandsOfScript, UNKNOWN } from "./shell-commands.ts";

/** A word of a command. `source` is returned to the caller for a word that comes from a parameter. */
export type Item<Source> =
  | { readonly kind: "text"; readonly text: string }
  /** Not known from the text; `many`: any number of words, such as `...enter`. */
  | { readonly kind: "unknown"; readonly many: boolean }
  | { readonly kind: "parameter"; readonly source: Source; readonly many: boolean };

/** A source may be a property of a parameter. */
interface Given {
  readonly property?: string | undefined;
}

/** The meaning of a parameter at that position. */
export type Role = "command" | "program" | "script";

export interface Found<Source> {
  program(name: string): void;
  parameter(source: Source, role: Role): void;
}

interface Starter {
  /** Options whose value is a separate word. */
  readonly valued?: readonly string[];
  /** Number of words before the command that are not options. */
  readonly before?: number;
}

/** Programs that start the command after their own words. */
const STARTERS: Readonly<Record<string, Starter>> = {
  nsenter: { valued: ["-t"] },
  unshare: { valued: ["--propagation"] },
  setpriv: { valued: ["--pdeathsig", "--reuid", "--regid", "--bounding-set", "--inh-caps", "--ambient-caps"] },
  strace: { valued: ["-e", "-o", "-P", "-s", "-E"] },
  timeout: { valued: ["-k", "-s"], before: 1 },
  flock: { before: 1 },
  nice: { valued: ["-n"] },
  setsid: {},
  xargs: { valued: ["-n", "-I", "-P"] },
  env: {},
};
const SHELLS = new Set(["sh", "bash", "dash", "zsh", "fish"]);
const BUILT_IN = new Set(
  ". : [ alias break cd compgen complete continue echo eval exec exit export false getopts hash jobs kill local printf pwd read return set shift shopt source test times trap true type ulimit umask unset wait".split(
    " ",
  ),
);

export function findPrograms<Source extends Given>(items: readonly Item<Source>[], found: Found<Source>): void {
  for (const [at, item] of items.entries()) {
    if (item.kind === "parameter") {
      // `...program, ...options.args`: after a program that the caller chooses, a property contains its arguments.
      if (item.source.property !== undefined && items.slice(0, at).some(isParameter)) return;
      found.parameter(item.source, item.many ? "command" : "program");
    }
    // An unknown prefix (`...enter`): the command follows it.
    if (item.kind !== "text" && item.many) continue;
    if (item.kind === "text") findFrom(item.text, items.slice(at + 1), found);
    return;
  }
}

function findFrom<Source extends Given>(word: string, rest: readonly Item<Source>[], found: Found<Source>): void {
  if (word.includes(UNKNOWN) || word === "") return;
  const program = /^(?:\/usr)?\/s?bin\/([^/]+)$/.exec(word)?.[1] ?? word;
  found.program(program);
  const starter = Object.hasOwn(STARTERS, program) ? STARTERS[program] : undefined;
  if (starter !== undefined) findPrograms(commandBehind(rest, starter), found);
  else if (SHELLS.has(program)) findInShell(rest, found);
  else if (program === "ip") findPrograms(behindNetnsExec(rest), found);
  else if (program === "script") findInShell(rest, found);
}

function commandBehind<Source extends Given>(items: readonly Item<Source>[], { valued = [], before = 0 }: Starter) {
  let at = 0;
  for (let left = before; at < items.length; at++) {
    const item = items[at];
    if (item?.kind !== "text") {
      const isOne = item?.kind === "unknown" && !item.many;
      if (isOne && left > 0) left -= 1;
      // Options of the starter.
      else if (items.slice(at).some((later) => isText(later, "--"))) continue;
      else break;
    } else if (item.text === "--") {
      at += 1;
      break;
    } else if (valued.includes(item.text)) at += 1;
    else if (item.text.startsWith("-") || /^\w+=/.test(item.text)) continue;
    else if (left > 0) left -= 1;
    else break;
  }
  return items.slice(at);
}

function behindNetnsExec<Source extends Given>(items: readonly Item<Source>[]): readonly Item<Source>[] {
  const at = items.findIndex(
    (item, index) => item.kind === "text" && item.text === "exec" && isText(items[index - 1], "netns"),
  );
  return at < 0 ? [] : items.slice(at + 2);
}

function isParameter({ kind }: Item<unknown>): boolean {
  return kind === "parameter";
}

function isText(item: Item<unknown> | undefined, text: string): boolean {
  return item?.kind === "text" && item.text === text;
}

/** `-c script name "$@"`: the script, and the command after it if the script runs its arguments. */
function findInShell<Source extends Given>(items: readonly Item<Source>[], found: Found<Source>): void {
  const option = items.findIndex((item) => item.kind === "text" && /^-[a-z]*c$/.test(item.text));
  const script = option < 0 ? undefined : items[option + 1];
  if (script?.kind === "parameter") found.parameter(script.source, "script");
  if (script?.kind !== "text") return;

  findInScript(script.text, found);
  if (/"\$@"/.test(script.text)) findPrograms(items.slice(option + 3), found);
}

export function findInScript<Source extends Given>(script: string, found: Found<Source>): void {
  for (const words of commandsOfScript(script)) {
    const [first = ""] = words;
    if (BUILT_IN.has(first)) continue;
    findPrograms(
      words.map((text) => ({ kind: "text", text }) as const),
      found,
    );
  }
}
