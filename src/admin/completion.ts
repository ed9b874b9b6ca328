/**
 * Completion scripts, written from the table of commands.
 *
 * Each script first finds out which command the words before the cursor lead to
 * (`at`, such as "config check"), then offers what stands there. It never runs
 * the tool.
 */
import { COMMON_OPTIONS, type Command, type CommandGroup, type Option, optionsOf } from "./command.ts";

export const COMPLETION_SHELLS = ["bash", "zsh", "fish"] as const;
export type CompletionShell = (typeof COMPLETION_SHELLS)[number];

export function isCompletionShell(text: string): text is CompletionShell {
  return COMPLETION_SHELLS.some((shell) => shell === text);
}

export function completionScript(shell: CompletionShell, root: CommandGroup): string {
  const script = { bash, zsh, fish }[shell];
  return `${script(root.name, placesOf(root)).join("\n")}\n`;
}

interface Offer {
  readonly word: string;
  readonly summary: string;
}

/** A point that the words before the cursor can lead to. */
interface Place {
  /** "config check"; empty at the start. */
  readonly at: string;
  /** Commands, or the values of an argument. */
  readonly words: readonly Offer[];
  readonly options: readonly Option[];
  readonly files: boolean;
}

function placesOf(root: CommandGroup): readonly Place[] {
  return [...walk(root, "")];
}

function* walk(member: Command | CommandGroup, at: string): Generator<Place> {
  if (member.kind === "command") {
    const values = Array.isArray(member.completes) ? member.completes : [];
    const words = values.map((word: string) => ({ word, summary: "" }));
    yield { at, words, options: optionsOf(member), files: member.completes === "files" };
    return;
  }
  const words = member.commands.map(({ name, summary }) => ({ word: name, summary }));
  yield { at, words, options: COMMON_OPTIONS.filter(({ name }) => name === "help"), files: false };
  for (const inner of member.commands) yield* walk(inner, at === "" ? inner.name : `${at} ${inner.name}`);
}

function flagsOf(options: readonly Option[]): readonly string[] {
  return options.flatMap(({ name, letter }) => [`--${name}`, ...(letter === undefined ? [] : [`-${letter}`])]);
}

function functionName(tool: string): string {
  return `_${tool.replace(/[^a-zA-Z0-9]/g, "_")}`;
}

/** `case` arms that walk one word further: " config" -> "config", "config check" -> "config check". */
function stepArms(places: readonly Place[], indent: string): readonly string[] {
  return places.filter(({ at }) => at !== "").map(({ at }) => `${indent}"${steps(at)}") at="${at}" ;;`);
}

/** The place before, a bar, and the word that leads on. */
function steps(at: string): string {
  const words = at.split(" ");
  return `${words.slice(0, -1).join(" ")}|${words.at(-1)}`;
}

/** Options that take one of a few values, wherever they stand: their completion needs no place. */
function valueArms(places: readonly Place[], offer: (values: string) => string): readonly string[] {
  const options = new Map(places.flatMap((place) => place.options).map((option) => [option.name, option]));
  return [...options.values()]
    .filter((option) => option.value !== undefined)
    .map((option) => `    ${flagsOf([option]).join("|")}) ${offer((option.oneOf ?? []).join(" "))}; return ;;`);
}

function bash(tool: string, places: readonly Place[]): readonly string[] {
  const name = functionName(tool);
  return [
    `# bash completion for ${tool}`,
    `${name}() {`,
    `  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" at="" word words="" flags=""`,
    "  COMPREPLY=()",
    '  case "$previous" in',
    ...valueArms(places, (values) => `COMPREPLY=($(compgen -W "${values}" -- "$current"))`),
    "  esac",
    `  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do`,
    '    case "$at|$word" in',
    ...stepArms(places, "      "),
    "    esac",
    "  done",
    '  case "$at" in',
    ...places.map(({ at, words, options, files }) => {
      const offered = `words="${words.map(({ word }) => word).join(" ")}"; flags="${flagsOf(options).join(" ")}"`;
      return `    "${at}") ${offered}${files ? '; compopt -o filenames; COMPREPLY=($(compgen -f -- "$current"))' : ""} ;;`;
    }),
    "  esac",
    '  if [[ "$current" == -* ]]; then words="$flags"; fi',
    '  if [[ -n "$words" ]]; then COMPREPLY=($(compgen -W "$words" -- "$current")); fi',
    "}",
    `complete -F ${name} ${tool}`,
  ];
}

function zsh(tool: string, places: readonly Place[]): readonly string[] {
  const name = functionName(tool);
  const described = (offers: readonly Offer[]) =>
    offers.map(({ word, summary }) => singleQuoted(summary === "" ? word : `${word}:${summary}`)).join(" ");
  return [
    `#compdef ${tool}`,
    `${name}() {`,
    '  local at="" word',
    "  local -a offers flags",
    `  case "\${words[CURRENT-1]}" in`,
    ...valueArms(places, (values) => `compadd -- ${values}`),
    "  esac",
    `  for word in "\${(@)words[2,CURRENT-1]}"; do`,
    '    case "$at|$word" in',
    ...stepArms(places, "      "),
    "    esac",
    "  done",
    '  case "$at" in',
    ...places.map(({ at, words, options, files }) => {
      const flags = described(options.map((option) => ({ word: `--${option.name}`, summary: option.summary })));
      return `    "${at}") offers=(${described(words)}); flags=(${flags})${files ? "; _files" : ""} ;;`;
    }),
    "  esac",
    "  (( $#offers )) && _describe command offers",
    '  [[ "$PREFIX" == -* ]] && _describe option flags',
    "}",
    // Autoloaded from fpath the file is the function's first call; sourced, it only registers.
    `if [[ "\${funcstack[1]}" == "${name}" ]]; then ${name} "$@"; else compdef ${name} ${tool}; fi`,
  ];
}

function fish(tool: string, places: readonly Place[]): readonly string[] {
  const name = `_${functionName(tool)}_at`;
  return [
    `# fish completion for ${tool}`,
    `function ${name}`,
    '  set -l at ""',
    "  for word in (commandline -opc)[2..-1]",
    '    switch "$at|$word"',
    ...places.filter(({ at }) => at !== "").map(({ at }) => `      case "${steps(at)}"; set at "${at}"`),
    "    end",
    "  end",
    '  test "$at" = "$argv[1]"',
    "end",
    `complete -c ${tool} -f`,
    ...places.flatMap((place) => fishPlace(tool, name, place)),
  ];
}

function fishPlace(tool: string, name: string, { at, words, options, files }: Place): readonly string[] {
  const start = `complete -c ${tool} -n '${name} "${at}"'`;
  return [
    ...words.map(({ word, summary }) => `${start} -a ${word} -d ${singleQuoted(summary)}`),
    ...options.map((option) => {
      const letter = option.letter === undefined ? "" : ` -s ${option.letter}`;
      const value = option.value === undefined ? "" : ` -x -a "${(option.oneOf ?? []).join(" ")}"`;
      return `${start} -l ${option.name}${letter}${value} -d ${singleQuoted(option.summary)}`;
    }),
    ...(files ? [`${start} -F`] : []),
  ];
}

function singleQuoted(text: string): string {
  return `'${text.replaceAll("'", "’")}'`;
}
