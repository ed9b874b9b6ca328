/** The help of a command or a group, written from its description. */
import { COMMON_OPTIONS, type Command, type CommandGroup, commonOptionsOf } from "./command.ts";
import { DATASTORE_OPTIONS } from "./datastore/options.ts";
import type { Option } from "./option.ts";
import type { Paint } from "./paint.ts";

/** `words`: how the user came here, the tool's name first. */
export function helpText(subject: Command | CommandGroup, words: readonly string[], paint: Paint): string {
  const call = words.join(" ");
  const body = subject.kind === "group" ? groupHelp(subject, call, paint) : commandHelp(subject, words, paint);
  return `${subject.summary}\n\n${body.join("\n")}\n`;
}

function groupHelp(group: CommandGroup, call: string, { bold }: Paint): readonly string[] {
  return [
    `${bold("Usage:")} ${call} COMMAND [OPTIONS]`,
    "",
    bold("Commands:"),
    ...columns(group.commands.map(({ name, summary }) => [name, summary])),
    "",
    bold("Options of every command:"),
    ...columns(COMMON_OPTIONS.map(optionRow)),
    "",
    `"${call} COMMAND --help" explains a command.`,
    "Exit codes: 0 done, 1 failed, 2 wrong usage.",
  ];
}

function commandHelp(command: Command, words: readonly string[], { bold }: Paint): readonly string[] {
  const operands = command.operands === undefined ? "" : ` ${command.operands}`;
  const tool = words[0] ?? "";
  return [
    `${bold("Usage:")} ${words.join(" ")} [OPTIONS]${operands}`,
    ...(command.description === undefined ? [] : ["", command.description]),
    "",
    bold("Options:"),
    ...columns([...(command.options ?? []), ...commonOptionsOf(command)].map(optionRow)),
    ...(command.needsDatastore ? ["", bold("Which datastore:"), ...columns(DATASTORE_OPTIONS.map(optionRow))] : []),
    "",
    bold("Examples:"),
    ...command.examples.flatMap(({ command: line, does }) => [`  # ${does}`, `  ${tool} ${line}`]),
  ];
}

function optionRow(option: Option): readonly [string, string] {
  const letter = option.letter === undefined ? "    " : `-${option.letter}, `;
  const value = option.value === undefined ? "" : ` ${option.value}`;
  return [`${letter}--${option.name}${value}`, option.summary];
}

function columns(rows: readonly (readonly [string, string])[]): readonly string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
