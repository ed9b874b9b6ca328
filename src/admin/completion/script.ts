/**
 * Completion scripts, generated from the table of commands.
 *
 * Each script first determines which command the words before the cursor name
 * (`at`, such as "config check"), then offers what can follow it. Kinds and
 * names of resources come from the tool itself (`names.ts`).
 */
import {
  COMMON_OPTIONS,
  type Command,
  type CommandCode,
  type CommandGroup,
  EXIT_OK,
  type Given,
  optionsOf,
  UsageError,
  visibleCommands,
} from "../main/command.ts";
import type { Terminal } from "../main/context.ts";
import type { Option } from "../main/option.ts";
import { COMPLETION_SHELLS, type CompletionShell, isCompletionShell, NAMES_COMMAND } from "./shells.ts";

/** `commands`: the table of all commands. */
export function printingScript(commands: () => CommandGroup): CommandCode {
  return {
    async run(context: Terminal, { operands }: Given) {
      const [shell = "", ...more] = operands;
      if (!isCompletionShell(shell) || more.length > 0) {
        throw new UsageError(`"completion" requires exactly one shell: ${COMPLETION_SHELLS.join(", ")}`);
      }
      context.stdout(completionScript(shell, commands()));
      return EXIT_OK;
    },
  };
}

export function completionScript(shell: CompletionShell, root: CommandGroup): string {
  const script = { bash, zsh, fish }[shell];
  return `${script(root.name, placesOf(root)).join("\n")}\n`;
}

interface Offer {
  readonly word: string;
  readonly summary: string;
}

/** A command or group that the words before the cursor can name. */
interface Place {
  /** "config check"; empty for the tool itself. */
  readonly at: string;
  /** Commands, or possible values of an argument. */
  readonly words: readonly Offer[];
  readonly options: readonly Option[];
  readonly files: boolean;
  /** Its arguments are a kind and names of resources. */
  readonly names: boolean;
}

function placesOf(root: CommandGroup): readonly Place[] {
  return [...walk(root, "")];
}

function* walk(member: Command | CommandGroup, at: string): Generator<Place> {
  if (member.kind === "command") {
    const values = Array.isArray(member.completes) ? member.completes : [];
    const words = values.map((word: string) => ({ word, summary: "" }));
    yield {
      at,
      words: [...wordsBelow(member), ...words],
      options: optionsOf(member),
      files: member.completes === "files",
      names: member.completesNames !== undefined,
    };
  } else
    yield {
      at,
      words: wordsBelow(member),
      options: COMMON_OPTIONS.filter(({ name }) => name === "help"),
      files: false,
      names: false,
    };
  for (const inner of visibleCommands(member)) yield* walk(inner, at === "" ? inner.name : `${at} ${inner.name}`);
}

function wordsBelow(member: Command | CommandGroup): readonly Offer[] {
  return visibleCommands(member).map(({ name, summary }) => ({ word: name, summary }));
}

function flagsOf(options: readonly Option[]): readonly string[] {
  return options.flatMap(({ name, letter }) => [`--${name}`, ...(letter === undefined ? [] : [`-${letter}`])]);
}

function functionName(tool: string): string {
  return `_${tool.replace(/[^a-zA-Z0-9]/g, "_")}`;
}

/** `case` arms that advance by one word: "|config" -> "config", "config|check" -> "config check". */
function stepArms(places: readonly Place[], indent: string): readonly string[] {
  return places.filter(({ at }) => at !== "").map(({ at }) => `${indent}"${steps(at)}") at="${at}" ;;`);
}

/** The previous place, a bar, and the next word. */
function steps(at: string): string {
  const words = at.split(" ");
  return `${words.slice(0, -1).join(" ")}|${words.at(-1)}`;
}

/** The shell code that offers the values of an option. */
type ValueOffer = (option: Option) => string;

/** `case` arms on the place and the word before the cursor. An option that is the same everywhere does not need the place. */
function valueArms(places: readonly Place[], offer: ValueOffer): readonly string[] {
  const arms = new Map<string, Set<string>>();
  const offersOf = Map.groupBy(
    places.flatMap(({ options }) => options),
    ({ name }) => name,
  );
  const isSameEverywhere = new Map(
    Array.from(offersOf, ([name, options]) => [name, new Set(options.map(offer)).size === 1]),
  );
  for (const { at, options } of places) {
    for (const option of options.filter(({ value, valueIfBare }) => value !== undefined && valueIfBare === undefined)) {
      const place = isSameEverywhere.get(option.name) ? "*" : `"${at}"`;
      const patterns = flagsOf([option]).map((flag) => `${place}"|${flag}"`);
      arms.set(offer(option), new Set([...(arms.get(offer(option)) ?? []), ...patterns]));
    }
  }
  return [...arms].map(([action, patterns]) => `    ${[...patterns].join("|")}) ${action}; return ;;`);
}

function bash(tool: string, places: readonly Place[]): readonly string[] {
  const name = functionName(tool);
  return [
    `# bash completion for ${tool}`,
    `${name}() {`,
    `  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" at="" word words="" flags=""`,
    "  COMPREPLY=()",
    `  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do`,
    '    case "$at|$word" in',
    ...stepArms(places, "      "),
    "    esac",
    "  done",
    '  case "$at|$previous" in',
    ...valueArms(places, (option) =>
      option.value === "FILE"
        ? 'compopt -o filenames; COMPREPLY=($(compgen -f -- "$current"))'
        : `COMPREPLY=($(compgen -W "${offeredValues(option)}" -- "$current"))`,
    ),
    "  esac",
    '  case "$at" in',
    ...places.map(({ at, words, options, files }) => {
      const offered = `words="${words.map(({ word }) => word).join(" ")}"; flags="${flagsOf(options).join(" ")}"`;
      return `    "${at}") ${offered}${files ? '; compopt -o filenames; COMPREPLY=($(compgen -f -- "$current"))' : ""} ;;`;
    }),
    "  esac",
    '  if [[ "$current" == -* ]]; then words="$flags"',
    `  elif [[ "$at" == @(${namedPlaces(places, "|")}) ]]; then`,
    // bash splits `--option=value` into three words.
    "    local -a line=()",
    `    for word in "\${COMP_WORDS[@]:1:COMP_CWORD}"; do`,
    `      if (( \${#line[@]} )) && [[ "$word" == "=" || "\${line[-1]}" == *= ]]; then line[-1]+="$word"; else line+=("$word"); fi`,
    "    done",
    `    if word=$(${namesCall('"$COMP_WORDS"')} "\${line[@]}" 2>/dev/null); then words="$word"; fi`,
    "  fi",
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
    `  for word in "\${(@)words[2,CURRENT-1]}"; do`,
    '    case "$at|$word" in',
    ...stepArms(places, "      "),
    "    esac",
    "  done",
    `  case "$at|\${words[CURRENT-1]}" in`,
    ...valueArms(places, (option) => (option.value === "FILE" ? "_files" : `compadd -- ${offeredValues(option)}`)),
    "  esac",
    '  case "$at" in',
    ...places.map(({ at, words, options, files }) => {
      const flags = described(options.map((option) => ({ word: `--${option.name}`, summary: option.summary })));
      return `    "${at}") offers=(${described(words)}); flags=(${flags})${files ? "; _files" : ""} ;;`;
    }),
    "  esac",
    `  if [[ "$PREFIX" != -* && "$at" == (${namedPlaces(places, "|")}) ]]; then`,
    "    local -a named",
    `    if word=$(${namesCall("$words[1]")} "\${(@)words[2,CURRENT]}" 2>/dev/null); then`,
    `      named=(\${(f)word}); compadd -- $named; return`,
    "    fi",
    "  fi",
    "  (( $#offers )) && _describe command offers",
    '  [[ "$PREFIX" == -* ]] && _describe option flags',
    "}",
    // If autoloaded from fpath, the file is the function's first call; if sourced, it only registers the function.
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

function fishPlace(tool: string, name: string, { at, words, options, files, names }: Place): readonly string[] {
  const start = `complete -c ${tool} -n '${name} "${at}"'`;
  const named = `(${namesCall("(commandline -opc)[1]")} (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)`;
  return [
    ...(names ? [`${start} -a '${named}'`] : []),
    ...(names ? [] : words).map(({ word, summary }) => `${start} -a ${word} -d ${singleQuoted(summary)}`),
    ...options.map((option) => {
      const letter = option.letter === undefined ? "" : ` -s ${option.letter}`;
      const value = fishValue(option);
      return `${start} -l ${option.name}${letter}${value} -d ${singleQuoted(option.summary)}`;
    }),
    ...(files ? [`${start} -F`] : []),
  ];
}

function fishValue(option: Option): string {
  if (option.value === undefined || option.valueIfBare !== undefined) return "";
  return option.value === "FILE" ? " -r -F" : ` -x -a "${offeredValues(option)}"`;
}

function offeredValues({ oneOf = [], withArgument = [] }: Option): string {
  return [...oneOf, ...withArgument.map((name) => `${name}=`)].join(" ");
}

/** Asks the tool what can follow the words after it; the datastore may not respond. */
function namesCall(tool: string): string {
  return `timeout ${NAMES_SECONDS} ${tool} ${NAMES_COMMAND} --`;
}

const NAMES_SECONDS = 2;

/** The places with names of resources, as a pattern. */
function namedPlaces(places: readonly Place[], separator: string): string {
  return places.flatMap(({ at, names }) => (names ? [at] : [])).join(separator);
}

function singleQuoted(text: string): string {
  return `'${text.replaceAll("'", "’")}'`;
}
